// The command line of tacho-example-train.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tacho::example {

struct TrainFlags {
  std::string job;       // Empty: TACHO_JOB.
  std::string ring_dir;  // Empty: TACHO_RING_DIR.
  std::optional<uint32_t> task;
  std::optional<uint32_t> attempt;
  uint32_t tasks = 1;
  int64_t steps = 2000;
  int64_t step_delay_ms = 0;
  uint64_t seed = 1;
  bool help = false;
};

// The text of --help.
extern const char kTrainHelp[];

// Returns an empty string, or what is wrong with the arguments.
std::string ParseTrainFlags(int argc, const char* const* argv, TrainFlags* flags);

}  // namespace tacho::example
