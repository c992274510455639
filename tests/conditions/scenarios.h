// Detectors against labelled runs of a synthetic fleet (tests/support/scenario.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/conditions/detectors/detectors.h"
#include "tests/support/scenario.h"

namespace tacho::conditions {

struct ScenarioScore {
  size_t trials = 0;  // Runs in which it must become true,
  size_t found = 0;   // in which it did,
  size_t named = 0;   // and, of those with a host or task to name, named it first.
  size_t to_name = 0;
  // Runs in which it became true before the fault, or though it neither had to nor could follow.
  size_t false_runs = 0;
  std::vector<double> seconds;       // Delay of those found.
  std::vector<std::string> remarks;  // Each that was missed or false, by the name of the run.
};

// The scores by condition. Each run is looked at every 10 seconds in the ten minutes after its
// fault, otherwise every minute. Sets `*hours` to the length of all runs together.
std::map<std::string, ScenarioScore> ScoreScenarios(
    const std::vector<server::conditions::Detector>& detectors,
    const std::vector<testing::Scenario>& scenarios, double* hours);

}  // namespace tacho::conditions
