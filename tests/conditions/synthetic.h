// Detectors against a synthetic fleet: how soon they find a planted fault, and what they find in a
// healthy fleet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/conditions/detectors/detectors.h"

namespace tacho::conditions {

struct SyntheticScore {
  const char* condition = "";
  const char* fault = "";
  size_t trials = 0;
  size_t found = 0;
  size_t right_culprit = 0;  // Those found whose target was the first culprit.
  size_t targeted = 0;
  std::vector<double> seconds;  // Delay.
  std::vector<double> steps;
};

struct HealthyScore {
  size_t moments = 0;
  double hours = 0;
  // For each detector: at how many moments it found something, and how many times it began to.
  std::vector<size_t> present;
  std::vector<size_t> episodes;
};

struct SyntheticOptions {
  size_t trials = 5;
  uint32_t tasks = 16;
  double healthy_seconds = 3600;  // The length of each healthy trial.
};

// One row for each fault whose condition has a detector among `detectors`. Seeds are fixed.
std::vector<SyntheticScore> ScoreFaults(const std::vector<server::conditions::Detector>& detectors,
                                        const SyntheticOptions& options);
HealthyScore ScoreHealthy(const std::vector<server::conditions::Detector>& detectors,
                          const SyntheticOptions& options);

}  // namespace tacho::conditions
