// One row of the table of detectors that the engine goes through for each job. A group of detectors
// makes its rows from its part of the configuration:
//
//   std::vector<Detector> ProgressDetectors(const config::v1::ConditionsProgress& config);
//   std::vector<Detector> CurvesDetectors(const config::v1::ConditionsCurves& config);
//   std::vector<Detector> HardwareDetectors(const config::v1::ConditionsHardware& config);
//
// in detectors_<group>.h. A row that is not enabled is in the table too: its condition is not
// judged, and one that was raised before is cleared.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct Detector {
  std::string name;  // Of the condition: "Stalled".
  bool enabled = true;
  // Bound to its settings. Pure, and called from one thread.
  std::function<Finding(const JobWindow&)> detect;
  // The finding must be present for so long before the condition is true, and absent (or not
  // judged) for so long before it is false again.
  absl::Duration hold_for;
  absl::Duration clear_after;
  std::optional<Severity> severity;  // Instead of the finding's.
};

// What `severity` of a condition's configuration means; nullopt if it is empty: the finding's.
std::optional<Severity> ParseSeverity(absl::string_view name);
absl::string_view SeverityName(Severity severity);  // "info", "warning", "critical"

}  // namespace tacho::server::conditions
