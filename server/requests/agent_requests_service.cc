#include "server/requests/agent_requests_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::requests {
namespace {

// Each may hold kMaxAskedBytes of reports, and waits for agents.
constexpr uint32_t kThreads = 2;

absl::Status RefusalOf(query::WorkerPool::Admission admission) {
  if (admission == query::WorkerPool::Admission::kClosed) return errors::Draining();
  return errors::ErrorOf(errors::Failure::kOverloaded,
                         absl::StrCat("agents are asked for ", kThreads,
                                      " other things now: try again when one has ended"));
}

}  // namespace

AgentRequestsService::AgentRequestsService(AgentRequestsOptions options)
    : options_(std::move(options)), jobs_(options_.jobs), workers_(kThreads) {}

template <typename Response, typename Request, typename Method>
grpc::ServerUnaryReactor* AgentRequestsService::Serve(const char* what,
                                                      grpc::CallbackServerContext* context,
                                                      const Request* request, Response* response,
                                                      Method method) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto caller = security::AdmitCall(options_.access, *context, security::Role::kAdmin);
  absl::Status allowed = caller.status();
  if (allowed.ok() && !request->job().empty()) {
    allowed = caller->rights().CheckJob(request->job(), "job");
  }
  if (!allowed.ok()) {
    options_.log.Limited(
        log::Level::kWarn, "request to agents refused",
        {{"what", what}, {"peer", context->peer()}, {"reason", allowed.message()}});
    reactor->Finish(errors::ToGrpcStatus(allowed));
    return reactor;
  }
  const auto run = [this, what, reactor, request, response, method, rights = caller->rights_ptr(),
                    peer = context->peer()] {
    auto answer = (jobs_.*method)(*request, absl::StrCat("asked by ", rights->name()));
    options_.log.Info("agents were asked",
                      {{"what", what},
                       {"job", request->job()},
                       {"by", rights->name()},
                       {"peer", peer},
                       {"code", absl::StatusCodeToString(answer.status().code())},
                       {"text", answer.status().message()}});
    const absl::Status status = answer.status();
    if (status.ok()) *response = *std::move(answer);
    reactor->Finish(errors::ToGrpcStatus(status));
  };
  if (const auto admission = workers_.Run(run);
      admission != query::WorkerPool::Admission::kAccepted) {
    reactor->Finish(errors::ToGrpcStatus(RefusalOf(admission)));
  }
  return reactor;
}

grpc::ServerUnaryReactor* AgentRequestsService::TakeStacks(grpc::CallbackServerContext* context,
                                                           const v1::TakeStacksRequest* request,
                                                           v1::TakeStacksResponse* response) {
  return Serve("stacks", context, request, response, &JobRequests::TakeStacks);
}

grpc::ServerUnaryReactor* AgentRequestsService::TakeProfiles(grpc::CallbackServerContext* context,
                                                             const v1::TakeProfilesRequest* request,
                                                             v1::TakeProfilesResponse* response) {
  return Serve("profiles", context, request, response, &JobRequests::TakeProfiles);
}

void AgentRequestsService::OnStalled(const std::string& job) {
  const auto admission = workers_.Run([this, job] {
    v1::TakeStacksRequest request;
    request.set_job(job);
    const auto answer = jobs_.TakeStacks(request, "Stalled");
    if (answer.ok()) return;
    options_.log.Limited(log::Level::kWarn, "cannot take the stacks of a job that has stalled",
                         {{"job", job}, {"reason", answer.status().message()}});
  });
  if (admission == query::WorkerPool::Admission::kAccepted) return;
  options_.log.Limited(log::Level::kWarn, "the stacks of a job that has stalled are not taken",
                       {{"job", job}, {"reason", RefusalOf(admission).message()}});
}

bool AgentRequestsService::TakeProfilesSoon(const v1::TakeProfilesRequest& request,
                                            const std::string& cause) {
  const auto admission = profiler_.Run([this, request, cause] {
    const auto answer = jobs_.TakeProfiles(request, cause);
    if (answer.ok() && answer->absent().empty()) return;
    options_.log.Limited(log::Level::kWarn, "cannot take profiles of all trainers of a job",
                         {{"job", request.job()},
                          {"cause", cause},
                          {"profiles", answer.ok() ? answer->profiles_size() : 0},
                          {"reason", answer.ok() ? absl::StrCat("task ", answer->absent(0).task(),
                                                                ": ", answer->absent(0).reason())
                                                 : std::string(answer.status().message())}});
  });
  return admission == query::WorkerPool::Admission::kAccepted;
}

}  // namespace tacho::server::requests
