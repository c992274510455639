// tacho.v1.Marks over gRPC: checks the caller, changes the marks on a thread of its own, and logs
// who changed what.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "proto/base/log.h"
#include "server/query/worker_pool.h"
#include "server/security/access_control.h"
#include "storage/store.h"
#include "tacho/v1/marks.grpc.pb.h"

namespace tacho::server::marks {

struct MarksServiceOptions {
  storage::Store* store = nullptr;                  // Not owned; must outlive the service.
  const security::AccessControl* access = nullptr;  // Not owned; null lets everybody do everything.
  log::Log log;
};

// Thread-safe. A change needs the role write and the right to the job. A caller who may not read
// learns neither its marks nor the names of other jobs.
class MarksService final : public v1::Marks::CallbackService {
 public:
  explicit MarksService(MarksServiceOptions options);

  grpc::ServerUnaryReactor* ChangeMarks(grpc::CallbackServerContext* context,
                                        const v1::ChangeMarksRequest* request,
                                        v1::ChangeMarksResponse* response) override;

  // Refuses further calls with UNAVAILABLE, and returns when none is at work.
  void Drain() { workers_.Close(); }

 private:
  absl::Status Change(const security::Rights& rights, const v1::ChangeMarksRequest& request,
                      v1::ChangeMarksResponse* response) const;

  const MarksServiceOptions options_;
  query::WorkerPool workers_;  // Last: its threads use the others.
};

}  // namespace tacho::server::marks
