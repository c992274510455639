// A run of a made-up fleet, and the findings that it should have: detectors are evaluated over
// lists of these, for docs/conditions.md.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/synthetic_window.h"

namespace tacho::testing {

struct Scenario {
  std::string name;
  // Must become true between `at_seconds` and `until_seconds` (plus what it takes to clear).
  // Empty: a healthy run, in which no condition may become true.
  std::string condition;
  FleetOptions fleet;
  std::vector<Fault> faults;
  double duration_seconds = 1800;
  double at_seconds = 0;
  double until_seconds = std::numeric_limits<double>::infinity();
  // The first culprit's; absent: not checked.
  std::optional<std::string> host;
  std::optional<uint32_t> task;
  // Conditions that may be true as well: consequences of the same fault.
  std::vector<std::string> may_follow;
};

// Scenarios for the conditions of a job's progress, and healthy runs. The same seed gives the same
// list.
std::vector<Scenario> ProgressScenarios(uint64_t seed);
// Scenarios of what chips and hosts suffer from, and healthy runs that look a little like it.
std::vector<Scenario> HardwareScenarios(uint64_t seed);

}  // namespace tacho::testing
