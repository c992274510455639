// Which stage of the input limits a job that waits for its input.
//
// Tasks record for each stage (read, decode, transfer, …) the seconds of a step that it worked, as
// the mean over the threads and processes that ran it. If a stage limits, its workers never rest,
// so its seconds come near the step time; without prefetch they are the wait itself. In either case
// no other stage has more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct InputStage {
  std::string name;    // "decode", of the metric input_stage_decode_seconds.
  std::string reason;  // "WaitingForDecode".
  double seconds = 0;  // A step: the median over tasks of the mean since from_ns.
};

// The stage with the most seconds, the first by name of equals. nullopt if no task has recorded
// stages since from_ns, or if this stage has less than half of `wait_seconds`, the wait of a step:
// then the wait has a cause that no stage covers.
std::optional<InputStage> LimitingStage(const JobWindow& window, int64_t from_ns,
                                        double wait_seconds);

}  // namespace tacho::server::conditions
