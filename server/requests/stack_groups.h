// Tasks of a job, grouped by what their main threads do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/model/event.h"
#include "tacho/v1/agent_requests.pb.h"

namespace tacho::server::requests {

// Of one group; the innermost.
inline constexpr int kMaxGroupFrames = 64;
// Groups past this become one without a stack: then no two tasks do the same, which is all to say.
inline constexpr size_t kMaxGroups = 128;

struct TaskOnHost {
  uint32_t task = 0;
  std::string host;
  const v1::TaskStacks* untrusted = nullptr;  // As the agent says.
  std::optional<int64_t> step;                // The last that it recorded.
  std::string phase;                          // That it is in; empty: none.
};

// The largest first, of equal ones that of the lowest task. Two stacks are equal if they are of the
// same origin and go through the same functions of files with the same names; lines and directories
// may differ. Where there are no frames, where the thread waits counts.
std::vector<v1::StackGroup> GroupStacks(const std::vector<TaskOnHost>& tasks);

// "0-3,7": ascending numbers in few words, at most so many bytes.
std::string TaskRanges(const v1::StackGroup& group, size_t max_bytes);

// The result as an event "stacks_taken" of the job: of the largest groups the tasks and the stack,
// in the fields group.N.tasks and group.N.stack (the innermost frame first).
inline constexpr char kStacksTaken[] = "stacks_taken";
storage::Event ToEvent(const v1::TakeStacksResponse& stacks, const std::string& cause);

}  // namespace tacho::server::requests
