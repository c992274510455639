// One line of a nanoGPT-like log.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::importer {

struct StepLogValue {
  absl::string_view name;
  absl::string_view text;  // With its unit, if it has one.
};

struct StepLogLine {
  int64_t step = 0;
  std::vector<StepLogValue> values;  // Views into the line.
};

// "s:12 trl:3.31 lr:0.0018", "step:12/5000 val_loss:3.31 train_time:340ms". False if it is another
// line.
bool ParseStepLogLine(absl::string_view line, StepLogLine* parsed);

}  // namespace tacho::importer
