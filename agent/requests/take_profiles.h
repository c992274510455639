// Has the trainers' profiler servers record what they do, and stores the traces where TensorBoard's
// profile plug-in finds them.
//
//   DIRECTORY/plugins/profile/tacho_JOB_ATTEMPT_TIME/HOST_taskN.xplane.pb
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tacho/config/v1/agent.pb.h"
#include "tacho/v1/agent_requests.pb.h"

namespace tacho::agent {

// Most bytes of the traces that are held in memory at a time.
inline constexpr uint64_t kMaxTraceBytes = 512u << 20;
// The attribute by which a trainer says where its profiler server listens.
inline constexpr char kProfilerPort[] = "profiler_port";

struct ProfilesOptions {
  config::v1::Agent::Profiles config;  // With a directory.
  std::string rings;                   // Directory of rings.
  std::string host;                    // For the names of files.
  std::function<absl::Time()> now = absl::Now;
};

// All trainers record at the same time. `until` is MonotonicNow()'s. A task without a profile is
// among the findings, with the reason.
v1::AgentFindings TakeProfiles(const ProfilesOptions& options, const v1::AgentRequest& request,
                               absl::Time until);

// Removes the oldest profiles of an agent's below a directory until at most so many are left, of so
// many bytes together. Those of others are neither counted nor removed.
void RemoveOldProfiles(const std::string& directory, uint64_t max_bytes, uint32_t max_count);

}  // namespace tacho::agent
