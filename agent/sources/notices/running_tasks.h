// The tasks of training jobs that run on this machine now.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/sources/chips/process_jobs.h"

namespace tacho::agent {

struct RunningTasksPlaces {
  std::string rings;  // Their directory; may be empty.
  std::string proc = "/proc";
  std::string dev = "/dev";
};

// A machine has a task for each of its chips at most; those beyond are left out.
inline constexpr size_t kMaxRunningTasks = 64;

// Those whose processes write rings, and those whose processes hold a chip's device file and say in
// their environment which task they are; each once, by job, task and attempt. Takes some 50 ms of a
// processor on a machine with a thousand processes.
std::vector<ProcessJob> FindRunningTasks(const RunningTasksPlaces& places);

}  // namespace tacho::agent
