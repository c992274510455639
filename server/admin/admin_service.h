// tacho.v1.Admin over gRPC: checks a request, logs who asked for what, and does it on a thread of
// its own. AdminActions has the work itself.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/base/log.h"
#include "server/admin/snapshots.h"
#include "server/query/worker_pool.h"
#include "tacho/v1/admin.grpc.pb.h"

namespace tacho::server::admin {

// An operator can ask a collector for these. They are called from any thread, several at once; may
// block.
struct AdminActions {
  std::function<v1::DrainResponse(absl::Duration timeout)> drain;
  // All but `log` and `last_snapshot`.
  std::function<void(v1::GetStatsResponse*)> fill_stats;
  std::function<absl::Status()> reload;
};

struct AdminServiceOptions {
  AdminActions actions;
  SnapshotsOptions snapshots;
  log::Log log;
  std::function<absl::Time()> now = absl::Now;
  // Whether the caller may use the service; the caller gets the status. Null: every caller may,
  // which is right behind a socket that only its owner can open.
  std::function<absl::Status(const grpc::CallbackServerContext&)> authorize;
};

// Thread-safe. To be destroyed after the servers that serve it have been shut down.
class AdminService final : public v1::Admin::CallbackService {
 public:
  explicit AdminService(AdminServiceOptions options);

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;
  grpc::ServerUnaryReactor* GetStats(grpc::CallbackServerContext* context,
                                     const v1::GetStatsRequest* request,
                                     v1::GetStatsResponse* response) override;
  grpc::ServerUnaryReactor* SetLogLevel(grpc::CallbackServerContext* context,
                                        const v1::SetLogLevelRequest* request,
                                        v1::SetLogLevelResponse* response) override;
  grpc::ServerUnaryReactor* Reload(grpc::CallbackServerContext* context,
                                   const v1::ReloadRequest* request,
                                   v1::ReloadResponse* response) override;
  grpc::ServerUnaryReactor* Snapshot(grpc::CallbackServerContext* context,
                                     const v1::SnapshotRequest* request,
                                     v1::SnapshotResponse* response) override;

 private:
  grpc::ServerUnaryReactor* Run(const char* method, grpc::CallbackServerContext* context,
                                std::function<absl::Status()> work);
  absl::Status DrainNow(const v1::DrainRequest& request, v1::DrainResponse* response);
  absl::Status SetLevelNow(const v1::SetLogLevelRequest& request,
                           v1::SetLogLevelResponse* response);
  absl::Status SnapshotNow(const v1::SnapshotRequest& request, v1::SnapshotResponse* response)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void FillLog(v1::GetStatsResponse::LogStats* stats) const;

  const AdminServiceOptions options_;
  Snapshots snapshots_;
  absl::Mutex mutex_;
  v1::SnapshotResponse last_snapshot_ ABSL_GUARDED_BY(mutex_);  // Without a name: none.
  query::WorkerPool workers_;                                   // Last: its threads use the others.
};

}  // namespace tacho::server::admin
