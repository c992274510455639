// The parts of a collector, in the order in which they are built. For collector.cc, which builds
// and drains them, and collector_services.cc, which has what answers calls.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "prometheus/registry.h"
#include "server/admin/admin_listener.h"
#include "server/admin/admin_service.h"
#include "server/bridge/connect_bridge.h"
#include "server/cluster/asking/forward_reads.h"
#include "server/cluster/asking/forward_services.h"
#include "server/cluster/asking/forward_writes.h"
#include "server/cluster/cluster_service.h"
#include "server/cluster/membership.h"
#include "server/collector.h"
#include "server/collector_figures.h"
#include "server/conditions/condition_engine.h"
#include "server/edge/door.h"
#include "server/edge/quotas.h"
#include "server/forward/forwarding.h"
#include "server/history/history_bucket.h"
#include "server/http/http_server.h"
#include "server/http/metrics_page.h"
#include "server/http/readiness.h"
#include "server/ingest/agent_asker.h"
#include "server/ingest/agent_clocks.h"
#include "server/ingest/agent_ledger.h"
#include "server/ingest/ingest_service.h"
#include "server/interop/doors.h"
#include "server/job_boards.h"
#include "server/limits/series_limiting.h"
#include "server/marks/marks_service.h"
#include "server/process/clock_watch.h"
#include "server/process/reloader.h"
#include "server/promread/explore_door.h"
#include "server/promread/member_reads.h"
#include "server/promread/remote_read_door.h"
#include "server/query/query_service.h"
#include "server/requests/agent_requests_service.h"
#include "server/security/security.h"
#include "server/tensorboard/tensorboard_service.h"
#include "server/view/view_service.h"
#include "storage/store.h"

namespace tacho::server {

class Collector::Parts {
 public:
  Parts(const config::v1::Collector& config, CollectorWorld world);
  ~Parts();

  // The others do what the header says.
  absl::Status Start();
  int grpc_port() const { return door_->port(); }
  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }
  int admin_port() const { return admin_listener_ == nullptr ? 0 : admin_listener_->port(); }
  absl::Status Reload(absl::string_view asked_by);
  absl::Status Drain();
  std::string PageUrl() const ABSL_LOCKS_EXCLUDED(page_mutex_);

 private:
  absl::Status MakeMembership();
  absl::Status MakeSecurity();
  absl::Status OpenStore();
  absl::Status OpenDoor();
  absl::Status StartAdmin();
  // As tacho.v1.Admin says.
  v1::DrainResponse DrainIngest(absl::Duration timeout);
  void FillStats(v1::GetStatsResponse* stats);
  void FillMember(v1::ClusterMember* member) const;
  CollectorFigures Figures() const;
  absl::Status MakeConditions();
  absl::Status MakeServices();
  void MakeView();
  void MakeCluster();
  absl::Status MakeInterop();
  // In front of the services that answer queries, if this collector is in a cluster.
  void MakeForwarding();
  cluster::ForwardOptions ForwardOptions() const;
  void OnDisk(storage::DiskState state, const absl::Status& why);
  // As storage::SharedOptions::on_ended.
  void OnAcksEnded(const absl::Status& why) ABSL_LOCKS_EXCLUDED(owner_mutex_);
  // From now on this collector answers queries. If it is not the owner of its data any more, it
  // takes nothing.
  void Serve() ABSL_LOCKS_EXCLUDED(owner_mutex_);
  void TakeNothing();
  process::ClockWatch::Options ClockWatchOptions();
  void TellHealth() ABSL_LOCKS_EXCLUDED(health_mutex_);
  absl::Status StartGrpc();
  absl::Status StartHttp();
  // The jobs that lists and /metrics show: in a cluster those that this collector keeps, and not
  // the copies of host rows. Null: all.
  std::function<bool(absl::string_view job)> ShownJobs() const;
  // The same of what a job has from a host, for split jobs.
  std::function<bool(absl::string_view job, absl::string_view host)> ShownRows() const;
  // Null: no job is split.
  query::OwnPart OwnPart() const;
  // Decides who may use the HTTP port.
  http::HttpGuard Guard() const;
  // The page for browsers, and its API.
  absl::Status AddPage(const http::HttpGuard& guard, http::HttpServerOptions* options);
  void StopGrpc();

  const config::v1::Collector config_;  // As it was started.
  const CollectorWorld world_;
  const std::shared_ptr<prometheus::Registry> registry_;
  http::Readiness readiness_;
  absl::Mutex health_mutex_;
  // Belongs to grpc_; set while it serves.
  grpc::HealthCheckServiceInterface* health_ ABSL_GUARDED_BY(health_mutex_) = nullptr;
  absl::Mutex owner_mutex_;
  bool owns_ ABSL_GUARDED_BY(owner_mutex_) = true;  // The data, in the bucket.
  bool serves_ ABSL_GUARDED_BY(owner_mutex_) = false;
  mutable absl::Mutex page_mutex_;
  std::string page_url_ ABSL_GUARDED_BY(page_mutex_);  // Known once HTTP has its port.
  bool drained_ = false;
  const absl::Time started_;
  std::atomic<bool> draining_ = false;
  ingest::AgentClocks agent_clocks_;
  process::ClockWatch clock_watch_;
  // In the order in which they are built.
  std::unique_ptr<cluster::Membership> membership_;
  std::unique_ptr<security::Security> security_;
  std::unique_ptr<history::HistoryBucket> bucket_;  // Null: there is none.
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<limits::SeriesLimiting> limiting_;
  std::unique_ptr<edge::Quotas> quotas_;
  std::unique_ptr<edge::Door> door_;
  ingest::AgentLedger agents_;
  ingest::AgentAsker asker_;
  std::unique_ptr<conditions::ConditionEngine> conditions_;
  std::unique_ptr<ingest::IngestService> ingest_;
  std::unique_ptr<interop::Doors> doors_;
  std::unique_ptr<cluster::ForwardWrites> forwarded_writes_;  // Null: no cluster.
  std::unique_ptr<cluster::ForwardReads> forwarded_reads_;    // The same.
  std::unique_ptr<query::QueryService> query_;
  std::unique_ptr<TensorBoardService> tensorboard_;
  std::unique_ptr<promread::MemberReads> member_reads_;  // Null: no cluster.
  std::unique_ptr<promread::RemoteReadDoor> remote_read_;
  std::unique_ptr<promread::ExploreDoor> explore_;
  std::unique_ptr<marks::MarksService> marks_;
  std::unique_ptr<requests::AgentRequestsService> requests_;
  std::unique_ptr<cluster::ClusterService> cluster_;
  std::unique_ptr<JobBoards> boards_;
  std::unique_ptr<view::ViewService> view_;
  std::unique_ptr<cluster::ForwardedServices> forwarded_;  // Null: no cluster.
  std::unique_ptr<forward::Forwarding> forwarding_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<http::MetricsPage> metrics_page_;
  std::unique_ptr<bridge::ConnectBridge> bridge_;
  std::unique_ptr<http::HttpServer> http_;
  std::unique_ptr<admin::AdminService> admin_;
  std::unique_ptr<admin::AdminListener> admin_listener_;
  process::Reloader reloader_;
};

}  // namespace tacho::server
