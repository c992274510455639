// The calls that stay open. Their streams take no place among the workers while they wait, and are
// bounded by numbers of their own.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/query/query_service.h"
#include "server/query/watch/watch_rows.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::query {
namespace {

// A connection may have 100 calls at once (server/process/grpc_transport.cc). Those of a program
// share it: if watches took all of them, neither a query nor a stream of rows could begin.
constexpr uint32_t kWatchesOfPeer = 90;

}  // namespace

template <typename Response, typename Begin>
grpc::ServerWriteReactor<Response>* QueryService::StartWatch(const char* method,
                                                             grpc::CallbackServerContext* context,
                                                             std::shared_ptr<WatchBell> bell,
                                                             Begin begin) {
  const std::string peer = security::PeerOf(*context);
  CountWatch(peer, 1);
  metrics_.WatchBegan();
  const auto entry = std::make_shared<RunningQueries::Entry>(&running_);
  const auto stream = BasicWatchStream<Response>::Create(
      {.context = context,
       .timeout = absl::Nanoseconds(limits().timeout()),
       .draining = &draining_,
       .on_event = [bell = std::move(bell)] { bell->Ring(); },
       .on_end = [this,
                  method](const absl::Status& status) { metrics_.RecordWatch(method, status); },
       .on_done =
           [this, peer, entry] {
             entry->End();
             CountWatch(peer, -1);
             metrics_.WatchEnded();
           },
       .number = ++answers_});
  const absl::Status begun = begin(stream, entry.get());
  if (!begun.ok()) stream->End(begun);
  return stream.get();
}

void QueryService::CountWatch(const std::string& peer, int change) {
  watches_ += static_cast<uint32_t>(change);
  absl::MutexLock lock(&peers_mutex_);
  uint32_t& open = watches_of_peer_[peer];
  open += static_cast<uint32_t>(change);
  if (open == 0) watches_of_peer_.erase(peer);
}

absl::Status QueryService::CheckWatches(const std::string& peer) const {
  if (watches_ > limits().max_watches()) {
    return errors::ErrorOf(errors::Failure::kOverloaded,
                           "as many watches are open as query.max_watches allows: try again");
  }
  absl::MutexLock lock(&peers_mutex_);
  const auto open = watches_of_peer_.find(peer);
  if (open == watches_of_peer_.end() || open->second <= kWatchesOfPeer) return absl::OkStatus();
  return errors::ErrorOf(errors::Failure::kOverloaded,
                         absl::StrCat("this connection has ", kWatchesOfPeer,
                                      " watches, and needs room for other calls: use another one"));
}

absl::StatusOr<security::RightsPtr> QueryService::AdmitWatch(
    const grpc::CallbackServerContext& context, const Scope& scope,
    std::function<absl::Status()>* recheck) {
  const auto caller = security::AdmitCall(options_.access, context, security::Role::kRead);
  if (!caller.ok()) return caller.status();
  if (!scope.job->empty()) {
    TACHO_RETURN_IF_ERROR(caller->rights().CheckJob(*scope.job, scope.field));
  }
  if (options_.access != nullptr) {
    *recheck = [access = options_.access, caller = *caller] { return access->Recheck(caller); };
  }
  TACHO_RETURN_IF_ERROR(CheckWatches(security::PeerOf(context)));
  return caller->rights_ptr();
}

void QueryService::ListWatch(const Asked& asked, RunningQueries::Entry* entry) const {
  RunningQuery query = Describe(asked);
  query.watch = true;
  entry->Begin(std::move(query), asked.control);
}

grpc::ServerWriteReactor<v1::WatchResponse>* QueryService::Watch(
    grpc::CallbackServerContext* context, const v1::WatchRequest* request) {
  return StartWatch<v1::WatchResponse>("Watch", context, hub_.bell(),
                                       [&](const auto& stream, RunningQueries::Entry* entry) {
                                         return BeginWatch(*context, *request, stream, entry);
                                       });
}

absl::Status QueryService::BeginWatch(const grpc::CallbackServerContext& context,
                                      const v1::WatchRequest& request,
                                      std::shared_ptr<WatchStream> stream,
                                      RunningQueries::Entry* entry) {
  std::function<absl::Status()> recheck;
  const Scope scope = {&request.selector().job(), "selector.job"};
  const auto rights = AdmitWatch(context, scope, &recheck);
  if (!rights.ok()) return rights.status();
  const auto plan = MakeWatchPlan(request, limits().max_series());
  if (!plan.ok()) return plan.status();
  ListWatch({"Watch", &context, rights->get(), scope.job, &stream->control()}, entry);
  return AdmissionStatus(workers_.Run([this, plan = *plan, recheck, stream] {
    metrics_.Began();
    hub_.Begin(plan, recheck, stream);
    metrics_.Ended();
  }));
}

grpc::ServerWriteReactor<v1::WatchConditionsResponse>* QueryService::WatchConditions(
    grpc::CallbackServerContext* context, const v1::WatchConditionsRequest* request) {
  return StartWatch<v1::WatchConditionsResponse>(
      "WatchConditions", context, condition_watches_.bell(),
      [&](const auto& stream, RunningQueries::Entry* entry) {
        return BeginConditionWatch(*context, *request, stream, entry);
      });
}

absl::Status QueryService::BeginConditionWatch(const grpc::CallbackServerContext& context,
                                               const v1::WatchConditionsRequest& request,
                                               std::shared_ptr<ConditionWatchStream> stream,
                                               RunningQueries::Entry* entry) {
  std::function<absl::Status()> recheck;
  const auto rights = AdmitWatch(context, {&request.job(), "job"}, &recheck);
  if (!rights.ok()) return rights.status();
  TACHO_ASSIGN_OR_RETURN(auto filter, ConditionFilter::Create(request));
  ListWatch({"WatchConditions", &context, rights->get(), &request.job(), &stream->control()},
            entry);
  condition_watches_.Begin(std::move(filter), *rights, std::move(recheck), std::move(stream));
  return absl::OkStatus();
}

}  // namespace tacho::server::query
