// Where the threads of a process wait, as /proc shows it. The process does not notice.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tacho/v1/agent_requests.pb.h"

namespace tacho::agent {

struct KernelThread {
  int id = 0;
  std::string name;
  std::string state;     // "S", "R", "D", …
  std::string waits_in;  // A function of the kernel; empty: it runs, or this may not be read.
  std::vector<v1::StackFrame> frames;  // Empty: only root may read them.
};

// The threads of a process, the main one first; at most kMaxThreads (python_stacks.h).
//   NOT_FOUND  there is no such process.
absl::StatusOr<std::vector<KernelThread>> ReadKernelThreads(const std::string& proc, uint32_t pid);

// The functions of a /proc/PID/task/TID/stack, the innermost first. Takes any bytes.
std::vector<v1::StackFrame> ParseKernelStack(absl::string_view text);

// Whether the process has a handler for the signal; `status` is its /proc/PID/status.
bool CatchesSignal(absl::string_view status, int signal);

}  // namespace tacho::agent
