// What the simulated fleet is: jobs, and the hosts they have for themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::fleet {

struct JobSpec {
  std::string name;
  uint32_t tasks = 8;           // One chip each.
  uint32_t tasks_per_host = 4;  // The last host may have fewer.
  uint32_t first_host = 0;      // Hosts are "host-<number>", numbered through the fleet.
  double step_seconds = 0.1;    // A step without checkpoint, evaluation and faults.
  int64_t steps = 1'000'000;    // Planned: after them the job ends well.
  int64_t eval_every = 100;     // Steps; 0: never.
  int64_t checkpoint_every = 200;

  uint32_t hosts() const { return (tasks + tasks_per_host - 1) / tasks_per_host; }
  uint32_t HostOf(uint32_t task) const { return first_host + task / tasks_per_host; }
};

std::string HostName(uint32_t host);

// "NAME" or "NAME:tasks=16,per_host=4,step=0.1,steps=5000,eval=100,checkpoint=200".
//   INVALID_ARGUMENT  names the key that is wrong.
absl::StatusOr<JobSpec> ParseJob(absl::string_view text);

}  // namespace tacho::fleet
