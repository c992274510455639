// Which job's task a process of this machine is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tacho::agent {

struct ProcessJob {
  std::string job;   // Empty: not known.
  std::string task;  // Empty: not known. The same holds for attempt.
  std::string attempt;
  bool of_ring = false;
  bool operator==(const ProcessJob&) const = default;
};

// Rings that one look at a directory reads at most.
inline constexpr size_t kMaxRings = 1024;

struct RingOwner {
  int pid = 0;  // In its own pid namespace: two rings may share a number.
  ProcessJob job;
  bool alive = false;  // The process that writes it.
};
// The rings in `directory`, which may be empty or missing. Files that are no rings are left out:
// the source of rings says what is wrong with it.
std::vector<RingOwner> OwnersOfRings(const std::string& directory);

// The values that the recorder would take from the process's environment
// (client/environment_identity.h).
ProcessJob JobOfEnvironment(const std::string& proc, int pid);

// The tasks of training jobs that run on this machine now.

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
