// tacho.v1.Query over gRPC: finds a worker, runs the query there, streams its pieces. The rooms of
// this folder decide what a query means, without gRPC.
#pragma once

#include <grpcpp/grpcpp.h>
#include <prometheus/registry.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/conditions/condition_board.h"
#include "server/conditions/window/signal_names.h"
#include "server/cost/job_cost.h"
#include "server/limits/job_refusals.h"
#include "server/limits/refusal_ledger.h"
#include "server/process/reloadable.h"
#include "server/query/compare/remote_subject.h"
#include "server/query/query_metrics.h"
#include "server/query/range/columns_ahead.h"
#include "server/query/reactors.h"
#include "server/query/read/host_part.h"
#include "server/query/read/message_packing.h"
#include "server/query/running_queries.h"
#include "server/query/watch/conditions_watch.h"
#include "server/query/watch/watch_hub.h"
#include "server/query/worker_pool.h"
#include "server/security/access_control.h"
#include "storage/store.h"
#include "tacho/config/v1/collector.pb.h"
#include "tacho/v1/query.grpc.pb.h"

namespace tacho::server::query {

struct QueryServiceOptions {
  const storage::Store* store = nullptr;              // Not owned; must outlive the service.
  const limits::RefusalLedger* refusals = nullptr;    // Not owned; null: Cardinality() has none.
  const limits::JobRefusals* job_refusals = nullptr;  // Not owned; null: jobs have none.
  conditions::ConditionBoard* conditions = nullptr;   // Not owned; null: none are known.
  config::v1::Collector::Query limits;                // At the start. Durations in ns.
  std::function<absl::Time()> now = absl::Now;
  std::shared_ptr<prometheus::Registry> registry;  // Takes the tacho_query_* metrics.
  const security::AccessControl* access =
      nullptr;  // Not owned. Null lets everybody read everything.
  // Which metric means what, for Goodput, at the start. Null: the default names.
  std::shared_ptr<const conditions::SignalNames> signals = nullptr;
  // What has which price, and where power is found, for Cost, at the start. Null: as by default.
  std::shared_ptr<const cost::CostSettings> cost = nullptr;
  // Whether the agent of a host reports now, for Goodput. Null: no agents are known.
  std::function<bool(const std::string& host)> reports = nullptr;
  OwnPart own_part = nullptr;                            // For lists. Null: no job is split.
  absl::Duration watch_alive_after = absl::Seconds(15);  // As WatchHubOptions::alive_after.
};

// Thread-safe. Each query at work holds one of limits.max_concurrent threads; one more is refused
// with UNAVAILABLE and RetryInfo. A client that does not read holds its thread until
// limits.timeout. A watch holds one only while it sends what was stored before it began. Reloads
// `query`, `cost` and `conditions.signals`, for queries that begin from then on.
class QueryService final : public v1::Query::CallbackService, public process::Reloadable {
 public:
  explicit QueryService(QueryServiceOptions options);
  ~QueryService() override;

  // Refuses new queries with UNAVAILABLE, ends those at work with the same between two pieces, and
  // returns when none is left. Call before the server's Shutdown().
  void Drain();

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override
      ABSL_LOCKS_EXCLUDED(limits_mutex_);

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) override;
  grpc::ServerUnaryReactor* ListMetrics(grpc::CallbackServerContext* context,
                                        const v1::ListMetricsRequest* request,
                                        v1::ListMetricsResponse* response) override;
  grpc::ServerUnaryReactor* LabelValues(grpc::CallbackServerContext* context,
                                        const v1::LabelValuesRequest* request,
                                        v1::LabelValuesResponse* response) override;
  grpc::ServerUnaryReactor* Cardinality(grpc::CallbackServerContext* context,
                                        const v1::CardinalityRequest* request,
                                        v1::CardinalityResponse* response) override;
  grpc::ServerUnaryReactor* Goodput(grpc::CallbackServerContext* context,
                                    const v1::GoodputRequest* request,
                                    v1::GoodputResponse* response) override;
  grpc::ServerUnaryReactor* Cost(grpc::CallbackServerContext* context,
                                 const v1::CostRequest* request,
                                 v1::CostResponse* response) override;
  grpc::ServerUnaryReactor* Forecast(grpc::CallbackServerContext* context,
                                     const v1::ForecastRequest* request,
                                     v1::ForecastResponse* response) override;
  grpc::ServerWriteReactor<v1::ListSeriesResponse>* ListSeries(
      grpc::CallbackServerContext* context, const v1::ListSeriesRequest* request) override;
  grpc::ServerWriteReactor<v1::RangeResponse>* Range(grpc::CallbackServerContext* context,
                                                     const v1::RangeRequest* request) override;
  grpc::ServerWriteReactor<v1::IntegrateResponse>* Integrate(
      grpc::CallbackServerContext* context, const v1::IntegrateRequest* request) override;
  grpc::ServerWriteReactor<v1::LatestResponse>* Latest(grpc::CallbackServerContext* context,
                                                       const v1::LatestRequest* request) override;
  grpc::ServerWriteReactor<v1::WatchResponse>* Watch(grpc::CallbackServerContext* context,
                                                     const v1::WatchRequest* request) override;
  grpc::ServerWriteReactor<v1::CompareResponse>* Compare(
      grpc::CallbackServerContext* context, const v1::CompareRequest* request) override {
    return CompareAcross(context, request, nullptr);
  }
  // The same, with jobs that other members of the cluster keep.
  grpc::ServerWriteReactor<v1::CompareResponse>* CompareAcross(grpc::CallbackServerContext* context,
                                                               const v1::CompareRequest* request,
                                                               SubjectsElsewhere elsewhere);
  grpc::ServerWriteReactor<v1::CompareSubjectResponse>* CompareSubject(
      grpc::CallbackServerContext* context, const v1::CompareSubjectRequest* request) override;
  grpc::ServerUnaryReactor* FirstNonFinite(grpc::CallbackServerContext* context,
                                           const v1::FirstNonFiniteRequest* request,
                                           v1::FirstNonFiniteResponse* response) override;
  grpc::ServerWriteReactor<v1::ExportResponse>* Export(grpc::CallbackServerContext* context,
                                                       const v1::ExportRequest* request) override;
  grpc::ServerWriteReactor<v1::ListEventsResponse>* ListEvents(
      grpc::CallbackServerContext* context, const v1::ListEventsRequest* request) override;
  grpc::ServerUnaryReactor* Conditions(grpc::CallbackServerContext* context,
                                       const v1::ConditionsRequest* request,
                                       v1::ConditionsResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchConditionsResponse>* WatchConditions(
      grpc::CallbackServerContext* context, const v1::WatchConditionsRequest* request) override;

  // Answers a call with what `work` sends, from a worker: for answers that are put together from
  // those of other members. The call is admitted, counted and bounded as if it were answered here.
  template <typename Response>
  using Pieces = std::function<absl::Status(const QueryControl&, Send<Response>)>;
  template <typename Response>
  grpc::ServerWriteReactor<Response>* Across(const char* method,
                                             grpc::CallbackServerContext* context,
                                             const std::string& job, Pieces<Response> work);

  // For other services whose calls are queries too: they are admitted, counted, bounded and drained
  // like this service's own. `method` is a literal.

  config::v1::Collector::Query limits() const ABSL_LOCKS_EXCLUDED(limits_mutex_);  // In force.

  // The job that a call names, and the field that names it; or all jobs that its caller may read.
  struct Scope {
    const std::string* job = nullptr;
    const char* field = "";
  };

  // Refuses without a look at the store, so that the answer is the same whether or not the job
  // exists.
  absl::StatusOr<security::RightsPtr> Admit(const char* method,
                                            const grpc::CallbackServerContext& context,
                                            const Scope& scope);
  // A call that was admitted, for the list of those at work. All but `method` is needed only while
  // RunOnWorker() runs, `control` until the work has returned.
  struct Asked {
    const char* method = "";
    const grpc::CallbackServerContext* context = nullptr;  // Null: it did not come by gRPC.
    const security::Rights* rights = nullptr;
    const std::string* job = nullptr;  // Null: it names none.
    const QueryControl* control = nullptr;
    absl::string_view peer;  // Its address, if there is no context.
  };
  // OK if a worker takes the work: it then calls finish once, with what the work returned. Work
  // that ends its call by itself gives its place away before that.
  absl::Status RunOnWorker(const Asked& asked,
                           std::function<absl::Status(const WorkerPool::Leave&)> work,
                           std::function<void(const absl::Status&)> finish);
  const QueryServiceOptions& options() const { return options_; }
  const std::atomic<bool>& draining() const { return draining_; }
  // Counts a call of tacho.v1.Query or View whose request did not parse; of others, does nothing.
  // `method` is gRPC's name of it.
  void CountUnparsed(absl::string_view method);
  uint64_t NextSpread() { return ++answers_; }                           // For ToGrpcStatus().
  void CountSamples(uint64_t samples) { metrics_.AddSamples(samples); }  // Those returned.
  // Counts a call that needed no worker.
  void CountAnswer(const char* method, const absl::Status& status) {
    metrics_.Record(method, status, absl::ZeroDuration());
  }
  uint32_t queries_at_work() const { return workers_.active(); }
  uint32_t open_watches() const { return watches_; }
  const RunningQueries& running() const { return running_; }

 private:
  // Both run `work` on a worker if the caller's rights allow the scope. It returns the status that
  // ends the call. Answer() passes the rights, and the control if `work` takes two arguments;
  // Stream() passes the reactor, and the rights if it takes two.
  template <typename Work>
  grpc::ServerUnaryReactor* Answer(const char* method, grpc::CallbackServerContext* context,
                                   Scope scope, Work work);
  template <typename Response, typename Work>
  grpc::ServerWriteReactor<Response>* Stream(const char* method,
                                             grpc::CallbackServerContext* context, Scope scope,
                                             Work work);

  // OK if a worker has taken the work.
  static absl::Status AdmissionStatus(WorkerPool::Admission admission);
  // Makes the stream of a watch, and ends it if `begin` fails.
  template <typename Response, typename Begin>
  grpc::ServerWriteReactor<Response>* StartWatch(const char* method,
                                                 grpc::CallbackServerContext* context,
                                                 std::shared_ptr<WatchBell> bell, Begin begin);
  RunningQuery Describe(const Asked& asked) const;
  void CountWatch(const std::string& peer, int change) ABSL_LOCKS_EXCLUDED(peers_mutex_);
  // OVERLOADED if more watches are open, of all connections or of this one, than may be.
  absl::Status CheckWatches(const std::string& peer) const ABSL_LOCKS_EXCLUDED(peers_mutex_);
  // OK if there is room for the watch and its caller may read the job. *recheck stays null if the
  // caller's rights cannot end.
  absl::StatusOr<security::RightsPtr> AdmitWatch(const grpc::CallbackServerContext& context,
                                                 const Scope& scope,
                                                 std::function<absl::Status()>* recheck);
  // Lists a watch that was admitted.
  void ListWatch(const Asked& asked, RunningQueries::Entry* entry) const;
  // OK if the watch has begun, or will on a worker.
  absl::Status BeginWatch(const grpc::CallbackServerContext& context,
                          const v1::WatchRequest& request, std::shared_ptr<WatchStream> stream,
                          RunningQueries::Entry* entry);
  absl::Status BeginConditionWatch(const grpc::CallbackServerContext& context,
                                   const v1::WatchConditionsRequest& request,
                                   std::shared_ptr<ConditionWatchStream> stream,
                                   RunningQueries::Entry* entry);

  std::shared_ptr<const conditions::SignalNames> signals() const ABSL_LOCKS_EXCLUDED(limits_mutex_);
  std::shared_ptr<const cost::CostSettings> cost_settings() const
      ABSL_LOCKS_EXCLUDED(limits_mutex_);

  const QueryServiceOptions options_;
  std::atomic<bool> draining_ = false;
  std::atomic<uint64_t> answers_ = 0;  // Spreads the retries of refused clients.
  std::atomic<uint32_t> watches_ = 0;  // Open ones, until gRPC is done with them.
  mutable absl::Mutex peers_mutex_;
  // The same by gRPC's name of their connection.
  absl::flat_hash_map<std::string, uint32_t> watches_of_peer_ ABSL_GUARDED_BY(peers_mutex_);
  RunningQueries running_;
  QueryMetrics metrics_;
  mutable absl::Mutex limits_mutex_;
  config::v1::Collector::Query limits_ ABSL_GUARDED_BY(limits_mutex_);
  std::shared_ptr<const conditions::SignalNames> signals_ ABSL_GUARDED_BY(limits_mutex_);
  std::shared_ptr<const cost::CostSettings> cost_ ABSL_GUARDED_BY(limits_mutex_);
  WatchHub hub_;
  conditions::ConditionBoard no_conditions_;  // Used if options_.conditions is null.
  ConditionWatches condition_watches_;
  WorkerPool workers_;
  SpareThread spare_;  // A thread of workers_; empty on one core.
};

// The names of other jobs that a text suggests are not for those who may not read these jobs.
absl::Status WithoutOtherNames(const absl::Status& status, const security::Rights& rights,
                               const std::string* job);

}  // namespace tacho::server::query
