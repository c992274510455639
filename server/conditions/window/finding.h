// What a detector says of a job at a moment. Detectors are pure functions; how long a finding must
// hold before the condition is true, and how long it must be gone before it is false again, is
// applied afterwards by ConditionState (condition_state.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/conditions/window/signal.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

enum class Severity : uint8_t { kInfo, kWarning, kCritical };

// One figure that a verdict rests on.
struct Figure {
  std::string name;  // "step_time_median", "threshold", …
  double value = 0;
  std::string unit;  // UCUM, as of metrics: "s", "By", "1".
};

// Whom it is about: the first is the one to look at first.
struct Culprit {
  std::optional<uint32_t> task;
  std::string host;
  std::string chip;
  std::string metric;
  std::optional<int64_t> step;  // Since which, or at which.
  double score = 0;             // The detector's own; its header says which way is worse.
};

struct Finding {
  // There was too little data, or none of what it reads: neither true nor false.
  bool judged = false;
  bool present = false;
  Severity severity = Severity::kWarning;
  std::string reason;           // One word in CamelCase for machines: "NonFiniteLoss".
  std::string message;          // One sentence for a person, with host, step and figures.
  int64_t since_ns = 0;         // When it began as far as the data says; 0: now.
  std::optional<int64_t> step;  // Since which step; or the step it is about.
  std::vector<Figure> figures;
  std::vector<Culprit> culprits;  // The worst first, at most kMaxCulprits.
};

inline constexpr size_t kMaxCulprits = 16;

// There was nothing to judge by.
inline Finding NotJudged() { return {}; }
// Judged, and all is well.
inline Finding NotPresent() { return {.judged = true}; }

}  // namespace tacho::server::conditions
