// tacho.v1.View over gRPC: what a screen shows of many jobs or tasks at once. The other files of
// this folder decide the answers, without gRPC.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/goodput/goodput_board.h"
#include "server/query/query_service.h"
#include "server/query/worker_pool.h"
#include "server/security/rights.h"
#include "server/view/answered_jobs.h"
#include "server/view/fleet_board.h"
#include "tacho/v1/view.grpc.pb.h"

namespace tacho::server::view {

struct ViewServiceOptions {
  query::QueryService* queries = nullptr;  // Not owned; must outlive the service, as `goodput`.
  const goodput::GoodputBoard* goodput = nullptr;    // Null: rows have no figures.
  std::function<bool(absl::string_view job)> shows;  // As FleetBoardOptions has it.
  query::OwnPart own_part = nullptr;                 // Likewise.
  std::string version;
  // As WhoAmIResponse.page_url. Called from any thread. May be null.
  std::function<std::string()> page_url;
  uint64_t salt = 0;  // Differs at each start: see AnswerFleet().
  // All but what the query service knows. Called from any thread; may block. May be null.
  std::function<void(v1::CollectorResponse*)> fill_collector;
};

// Thread-safe. A call is a query, as those of QueryService: it needs the role read, sees the jobs
// of its caller, takes one of query.max_concurrent workers, ends at query.timeout, and is drained
// and counted by `queries`. Two calls explain why others fail, so they take no such worker: WhoAmI,
// which needs no role either, and Collector, which has threads of its own.
class ViewService final : public v1::View::CallbackService {
 public:
  explicit ViewService(ViewServiceOptions options);

  grpc::ServerUnaryReactor* Fleet(grpc::CallbackServerContext* context,
                                  const v1::FleetRequest* request,
                                  v1::FleetResponse* response) override;
  grpc::ServerWriteReactor<v1::MatrixResponse>* Matrix(grpc::CallbackServerContext* context,
                                                       const v1::MatrixRequest* request) override;
  grpc::ServerUnaryReactor* WhoAmI(grpc::CallbackServerContext* context,
                                   const v1::WhoAmIRequest* request,
                                   v1::WhoAmIResponse* response) override;
  grpc::ServerUnaryReactor* Collector(grpc::CallbackServerContext* context,
                                      const v1::CollectorRequest* request,
                                      v1::CollectorResponse* response) override;

 private:
  // Runs work(rights, control), which fills the answer, on a worker; `method` is a literal.
  template <typename Work>
  grpc::ServerUnaryReactor* Answer(const char* method, grpc::CallbackServerContext* context,
                                   Work work);

  absl::Status AnswerWhoAmI(const grpc::CallbackServerContext& context,
                            v1::WhoAmIResponse* response) const;
  absl::Status AnswerCollector(const security::Rights& rights,
                               v1::CollectorResponse* response) const;

  const ViewServiceOptions options_;
  FleetBoard fleet_;
  AnsweredJobs answered_;
  query::WorkerPool own_workers_;  // Last: what runs on them uses the others.
};

}  // namespace tacho::server::view
