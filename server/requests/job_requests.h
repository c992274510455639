// Asks the agents of one job for something, and puts their answers together.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/ingest/agent_asker.h"
#include "storage/store.h"
#include "tacho/v1/agent_requests.pb.h"

namespace tacho::server::requests {

// Stated in proto/tacho/v1/agent_requests.proto.
inline constexpr int kMaxTasksAsked = 4096;
inline constexpr uint32_t kMaxMillis = 60'000;

struct JobRequestsOptions {
  storage::Store* store = nullptr;      // Not owned.
  ingest::AgentAsker* asker = nullptr;  // Not owned.
  std::function<absl::Time()> now = absl::Now;
};

// Thread-safe. Calls block until agents have answered, or had their time.
//   INVALID_ARGUMENT  the text names the field.
//   NOT_FOUND         there is no such job.
//   others            as Store::Entities().
class JobRequests {
 public:
  explicit JobRequests(JobRequestsOptions options) : options_(std::move(options)) {}

  // Of the newest attempt. `cause` goes into the event: who asked, or the condition.
  absl::StatusOr<v1::TakeStacksResponse> TakeStacks(const v1::TakeStacksRequest& request,
                                                    const std::string& cause) const;
  absl::StatusOr<v1::TakeProfilesResponse> TakeProfiles(const v1::TakeProfilesRequest& request,
                                                        const std::string& cause) const;

 private:
  // The step and the phase of each task of an attempt, where they are known.
  struct Progress {
    std::map<uint32_t, int64_t> steps;
    std::map<uint32_t, std::string> phases;
  };
  Progress ReadProgress(const std::string& job, uint32_t attempt) const;
  // The tasks of the newest attempt, each with the hosts that it has run on.
  struct Tasks {
    uint32_t attempt = 0;
    std::map<uint32_t, std::set<std::string>> hosts;
    std::set<std::string> all_hosts;
  };
  absl::StatusOr<Tasks> FindTasks(const std::string& job,
                                  const google::protobuf::RepeatedField<uint32_t>& only) const;

  const JobRequestsOptions options_;
};

}  // namespace tacho::server::requests
