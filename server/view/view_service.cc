#include "server/view/view_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/query/reactors.h"
#include "server/security/grpc_caller.h"
#include "server/view/fleet_answer.h"
#include "server/view/matrix.h"

namespace tacho::server::view {
namespace {

constexpr size_t kMostRunning = 1000;
// A call of Collector takes some milliseconds, so more of them at once are no people.
constexpr uint32_t kOwnThreads = 4;

FleetBoardOptions BoardOptions(const ViewServiceOptions& options) {
  const query::QueryServiceOptions& queries = options.queries->options();
  FleetBoardOptions board;
  board.store = queries.store;
  board.conditions = queries.conditions;
  board.goodput = options.goodput;
  board.job_refusals = queries.job_refusals;
  board.shows = options.shows;
  board.own_part = options.own_part;
  board.now = queries.now;
  return board;
}

}  // namespace

ViewService::ViewService(ViewServiceOptions options)
    : options_(std::move(options)), fleet_(BoardOptions(options_)), own_workers_(kOwnThreads) {}

template <typename Work>
grpc::ServerUnaryReactor* ViewService::Answer(const char* method,
                                              grpc::CallbackServerContext* context, Work work) {
  query::QueryService* const queries = options_.queries;
  auto* call =
      new query::UnaryReactor(absl::Nanoseconds(queries->limits().timeout()), &queries->draining());
  const auto finish = [queries, call](const absl::Status& status) {
    call->Finish(errors::ToGrpcStatus(status, queries->NextSpread()));
  };
  const auto rights = queries->Admit(method, *context, {});
  const auto run = [call, rights, work = std::move(work)](const auto&) -> absl::Status {
    return work(**rights, call->control());
  };
  const absl::Status taken =
      rights.ok() ? queries->RunOnWorker(
                        {method, context, rights->get(), nullptr, &call->control()}, run, finish)
                  : rights.status();
  if (!taken.ok()) finish(taken);
  return call;
}

grpc::ServerUnaryReactor* ViewService::Fleet(grpc::CallbackServerContext* context,
                                             const v1::FleetRequest* request,
                                             v1::FleetResponse* response) {
  return Answer("view.Fleet", context,
                [this, request, response](const security::Rights& rights,
                                          const query::QueryControl& control) -> absl::Status {
                  TACHO_ASSIGN_OR_RETURN(const auto plan, MakeFleetPlan(*request));
                  TACHO_ASSIGN_OR_RETURN(const auto fleet, fleet_.Look(control));
                  const query::QueryServiceOptions& queries = options_.queries->options();
                  response->set_clock_unix_ns(absl::ToUnixNanos(queries.now()));
                  return AnswerFleet(*queries.store, *fleet, plan, rights, options_.salt, control,
                                     &answered_, response);
                });
}

grpc::ServerWriteReactor<v1::MatrixResponse>* ViewService::Matrix(
    grpc::CallbackServerContext* context, const v1::MatrixRequest* request) {
  query::QueryService* const queries = options_.queries;
  const auto limits = queries->limits();
  auto* call = new query::StreamReactor<v1::MatrixResponse>(
      context, absl::Nanoseconds(limits.timeout()), &queries->draining());
  const auto finish = [queries, call](const absl::Status& status) {
    call->End(errors::ToGrpcStatus(status, queries->NextSpread()));
  };
  const std::string* const job = &request->selector().job();
  const auto rights = queries->Admit("view.Matrix", *context, {job, "selector.job"});
  const auto run = [=](const query::WorkerPool::Leave& leave) -> absl::Status {
    const absl::Status status =
        view::Matrix(*queries->options().store, *request,
                     {limits.max_series(), limits.max_samples()}, call->control(),
                     [call](v1::MatrixResponse piece) { return call->Write(std::move(piece)); });
    const absl::Status sent = call->Flush(status.ok(), leave);
    return status.ok() ? sent : query::WithoutOtherNames(status, **rights, job);
  };
  const absl::Status taken =
      rights.ok() ? queries->RunOnWorker(
                        {"view.Matrix", context, rights->get(), job, &call->control()}, run, finish)
                  : rights.status();
  if (!taken.ok()) finish(taken);
  return call;
}

grpc::ServerUnaryReactor* ViewService::WhoAmI(grpc::CallbackServerContext* context,
                                              const v1::WhoAmIRequest* /*request*/,
                                              v1::WhoAmIResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::Status status =
      options_.queries->draining() ? errors::Draining() : AnswerWhoAmI(*context, response);
  options_.queries->CountAnswer("view.WhoAmI", status);
  reactor->Finish(errors::ToGrpcStatus(status, options_.queries->NextSpread()));
  return reactor;
}

absl::Status ViewService::AnswerWhoAmI(const grpc::CallbackServerContext& context,
                                       v1::WhoAmIResponse* response) const {
  const query::QueryServiceOptions& queries = options_.queries->options();
  security::Caller caller = security::Caller::Anyone();
  if (queries.access != nullptr) {
    TACHO_ASSIGN_OR_RETURN(caller, queries.access->Authenticate(security::CredentialsOf(context)));
    response->set_authentication(queries.access->enabled());
  }
  const security::Rights& rights = caller.rights();
  if (response->authentication()) response->set_name(rights.name());
  response->set_read(rights.Has(security::Role::kRead));
  response->set_write(rights.Has(security::Role::kWrite));
  response->set_admin(rights.Has(security::Role::kAdmin));
  response->set_jobs_pattern(rights.jobs_pattern());
  if (caller.valid_until() < absl::InfiniteFuture()) {
    response->set_expires_unix_ns(absl::ToUnixNanos(caller.valid_until()));
  }
  response->set_version(options_.version);
  response->set_clock_unix_ns(absl::ToUnixNanos(queries.now()));
  if (options_.page_url) response->set_page_url(options_.page_url());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ViewService::Collector(grpc::CallbackServerContext* context,
                                                 const v1::CollectorRequest* /*request*/,
                                                 v1::CollectorResponse* response) {
  query::QueryService* const queries = options_.queries;
  grpc::ServerUnaryReactor* const call = context->DefaultReactor();
  const auto finish = [queries, call](const absl::Status& status) {
    queries->CountAnswer("view.Collector", status);
    call->Finish(errors::ToGrpcStatus(status, queries->NextSpread()));
  };
  const auto rights = queries->Admit("view.Collector", *context, {});
  if (!rights.ok()) {  // Counted already.
    call->Finish(errors::ToGrpcStatus(rights.status(), queries->NextSpread()));
    return call;
  }
  const auto run = [=, this] {
    finish(queries->draining() ? errors::Draining() : AnswerCollector(**rights, response));
  };
  const auto taken = own_workers_.Run(run);
  if (taken == query::WorkerPool::Admission::kClosed) {
    finish(errors::Draining());
  } else if (taken == query::WorkerPool::Admission::kFull) {
    finish(
        errors::ErrorOf(errors::Failure::kOverloaded,
                        absl::StrCat(kOwnThreads, " calls of Collector are at work: try again")));
  }
  return call;
}

absl::Status ViewService::AnswerCollector(const security::Rights& rights,
                                          v1::CollectorResponse* response) const {
  if (!rights.SeesEveryJob()) {
    return errors::ErrorOf(
        errors::Failure::kForbidden,
        absl::StrCat("\"", rights.name(),
                     "\" may not read every job, as the collector's own figures need"));
  }
  query::QueryService& queries = *options_.queries;
  if (options_.fill_collector) options_.fill_collector(response);
  response->set_version(options_.version);
  response->set_clock_unix_ns(absl::ToUnixNanos(queries.options().now()));
  const auto limits = queries.limits();
  response->set_queries(queries.queries_at_work());
  response->set_queries_limit(limits.max_concurrent());
  response->set_watches(queries.open_watches());
  response->set_watches_limit(limits.max_watches());
  const bool has_names = queries.options().access != nullptr && queries.options().access->enabled();
  for (const query::RunningQuery& one : queries.running().Oldest(kMostRunning)) {
    v1::RunningQuery* const to = response->add_running();
    to->set_method(one.method);
    if (has_names) to->set_caller(one.caller);
    to->set_peer(one.peer);
    to->set_job(one.job);
    to->set_began_unix_ns(absl::ToUnixNanos(one.began));
    to->set_samples_read(one.samples_read);
    to->set_watch(one.watch);
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::view
