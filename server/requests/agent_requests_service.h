// tacho.v1.AgentRequests over gRPC: checks the caller, asks on a thread of its own, and logs who
// asked for what. The same without a call when a condition is raised, and
// profiles also on a schedule.
#pragma once

#include <string>

#include "grpcpp/grpcpp.h"
#include "proto/base/log.h"
#include "server/query/worker_pool.h"
#include "server/requests/job_requests.h"
#include "server/security/access_control.h"
#include "tacho/v1/agent_requests.grpc.pb.h"

namespace tacho::server::requests {

struct AgentRequestsOptions {
  JobRequestsOptions jobs;
  const security::AccessControl* access = nullptr;  // Not owned; null lets everybody do everything.
  log::Log log;
};

// Thread-safe. A call needs the role admin and the right to the job. The store is closed after
// Drain().
class AgentRequestsService final : public v1::AgentRequests::CallbackService {
 public:
  explicit AgentRequestsService(AgentRequestsOptions options);

  grpc::ServerUnaryReactor* TakeStacks(grpc::CallbackServerContext* context,
                                       const v1::TakeStacksRequest* request,
                                       v1::TakeStacksResponse* response) override;
  grpc::ServerUnaryReactor* TakeProfiles(grpc::CallbackServerContext* context,
                                         const v1::TakeProfilesRequest* request,
                                         v1::TakeProfilesResponse* response) override;

  // Takes the stacks of a job that has stalled, soon. Not if others are taken already.
  void OnStalled(const std::string& job);

  // Takes profiles of a job's trainers, soon, and stores an event for each. False if it takes some
  // already: of all jobs it takes those of one at a time, so that calls always find a thread.
  bool TakeProfilesSoon(const v1::TakeProfilesRequest& request, const std::string& cause);

  // Refuses further calls with UNAVAILABLE, and returns when none is at work.
  void Drain() {
    workers_.Close();
    profiler_.Close();
  }

 private:
  template <typename Response, typename Request, typename Method>
  grpc::ServerUnaryReactor* Serve(const char* what, grpc::CallbackServerContext* context,
                                  const Request* request, Response* response, Method method);

  const AgentRequestsOptions options_;
  const JobRequests jobs_;
  // Last: their threads use the others.
  query::WorkerPool workers_;
  query::WorkerPool profiler_{1};
};

}  // namespace tacho::server::requests
