// The collector as a whole: builds its parts in order and drains them in reverse.
//
//   security -> store -> conditions -> ingest service, query service -> gRPC server -> HTTP server
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "prometheus/registry.h"
#include "proto/base/log.h"
#include "server/admin/admin_listener.h"
#include "server/admin/admin_service.h"
#include "server/ingest/agent_ledger.h"
#include "server/conditions/condition_engine.h"
#include "server/edge/door.h"
#include "server/goodput/goodput_board.h"
#include "server/http/http_server.h"
#include "server/http/metrics_page.h"
#include "server/http/readiness.h"
#include "server/ingest/ingest_service.h"
#include "server/limits/series_limiting.h"
#include "server/process/log_level_part.h"
#include "server/query/query_service.h"
#include "server/edge/quotas.h"
#include "server/process/reload_metrics.h"
#include "server/process/reloadable.h"
#include "server/security/security.h"
#include "server/tensorboard/tensorboard_service.h"
#include "storage/store.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server {

// What the collector takes from the world around it.
struct CollectorWorld {
  std::function<absl::Time()> now = absl::Now;
  log::Log log;
  // Reads the configuration again, for Reload(). Called from any thread, once at a time.
  std::function<absl::StatusOr<config::v1::Collector>()> read_config;
  rocksdb::Env* env = nullptr;  // Not owned. nullptr is the real file system.
  // The disk has failed: the collector is to be drained and the process to end, for its supervisor
  // to start it again. May be null. Called from any thread: return at once.
  std::function<void()> on_disk_failed;
  // How long Drain() waits for streams and calls before it cuts them off.
  absl::Duration drain_timeout = absl::Seconds(15);
};

// Start(), Drain() and destruction are for one thread; Reload() is for any.
class Collector {
 public:
  // `config` is as ParseYaml() leaves it: complete and within bounds.
  //   UNAVAILABLE  an address cannot be listened on, or the disk refused; the text says which.
  //   others       as Security::Create() and storage::Store::Open().
  static absl::StatusOr<std::unique_ptr<Collector>> Start(const config::v1::Collector& config,
                                                          CollectorWorld world = {});
  ~Collector();  // Drains if Drain() was not called, and loses its status.

  int grpc_port() const { return door_->port(); }
  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }
  // 0 if Admin is not served on a port.
  int admin_port() const { return admin_listener_ == nullptr ? 0 : admin_listener_->port(); }

  // Reads the configuration again and puts its reloadable keys in force, all of them or none; says
  // so in the log and in metrics. `asked_by` is for the log.
  //   FAILED_PRECONDITION  keys that need a restart differ; the text names them.
  //   others               why it could not be read, or as the part that could not take its keys.
  absl::Status Reload(absl::string_view asked_by) ABSL_LOCKS_EXCLUDED(reload_mutex_);

  // Not ready any more -> no new streams or queries -> each stream ends once what it sent is
  // durable and acknowledged -> gRPC and HTTP stop -> the store seals and closes, whose status is
  // returned.
  absl::Status Drain();

 private:
  Collector(const config::v1::Collector& config, CollectorWorld world);

  absl::Status MakeSecurity();
  absl::Status OpenStore();
  absl::Status OpenDoor();
  absl::Status StartAdmin();
  // As tacho.v1.Admin says.
  v1::DrainResponse DrainIngest(absl::Duration timeout);
  void FillStats(v1::GetStatsResponse* stats) ABSL_LOCKS_EXCLUDED(reload_mutex_);
  absl::Status ReloadParts(const config::v1::Collector& config)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reload_mutex_);
  absl::Status MakeConditions();
  void MakeServices();
  void OnDisk(storage::DiskState state, const absl::Status& why);
  void TellHealth() ABSL_LOCKS_EXCLUDED(health_mutex_);
  absl::Status StartGrpc();
  absl::Status StartHttp();
  void StopGrpc();

  const config::v1::Collector config_;  // As it was started.
  const CollectorWorld world_;
  const std::shared_ptr<prometheus::Registry> registry_;
  Readiness readiness_;
  absl::Mutex health_mutex_;
  // Of grpc_ while it serves.
  grpc::HealthCheckServiceInterface* health_ ABSL_GUARDED_BY(health_mutex_) = nullptr;
  bool drained_ = false;
  const absl::Time started_;
  std::atomic<bool> draining_ = false;
  // In the order in which they are built.
  std::unique_ptr<Security> security_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<SeriesLimiting> limiting_;
  std::unique_ptr<Quotas> quotas_;
  std::unique_ptr<Door> door_;
  AgentLedger agents_;
  std::unique_ptr<ConditionEngine> conditions_;
  std::unique_ptr<IngestService> ingest_;
  std::unique_ptr<QueryService> query_;
  std::unique_ptr<TensorBoardService> tensorboard_;
  std::unique_ptr<GoodputBoard> goodput_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<MetricsPage> metrics_page_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<AdminService> admin_;
  std::unique_ptr<AdminListener> admin_listener_;
  LogLevelPart log_level_;
  // Not owned; those above that can. In the order in which they take a new configuration.
  std::vector<Reloadable*> reloadables_;
  ReloadMetrics reload_metrics_;
  absl::Mutex reload_mutex_;
  // Why the last reload was refused; OK if it was not.
  absl::Status last_reload_ ABSL_GUARDED_BY(reload_mutex_);
};

}  // namespace tacho::server
