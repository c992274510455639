// Faults planted into curves that were really recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/conditions/recorded_job.h"

namespace tacho::conditions {

enum class Plant : uint8_t {
  kNan,        // Loss is NaN from there on.
  kRunAway,    // Loss grows by 2 to 10 % of itself a value.
  kSpike,      // Loss is 1.2 to 3 times itself for 5 to 30 values, falling back exponentially.
  kPlateau,    // Loss stays at its level, with its noise.
  kOscillate,  // Loss swings by 10 to 40 % with a period of 2 to 16 values.
  kExplode,    // Gradient norm grows by 10 to 50 % a value.
  kVanish,     // Gradient norm falls by 20 to 60 % a value.
  kOverfit,    // Evaluation loss rises by 2 to 8 % of its best an evaluation.
};
inline constexpr Plant kPlants[] = {Plant::kNan,     Plant::kRunAway,   Plant::kSpike,
                                    Plant::kPlateau, Plant::kOscillate, Plant::kExplode,
                                    Plant::kVanish,  Plant::kOverfit};

const char* PlantName(Plant plant);
const char* ConditionOf(Plant plant);
// Values of the changed curve within which it must be found; 0: to the end.
size_t LimitOf(Plant plant);

struct PlantedJob {
  RecordedJob job;
  int64_t at_ns = 0;  // The time of the first changed value.
  int64_t at_step = 0;
  // How far the fault lifts the curve, in standard deviations of the noise before it; 0 for faults
  // that this does not describe.
  double noises = 0;
  std::vector<int64_t> times_ns;  // The times of the changed curve from there on.
  std::vector<int64_t> steps;
};

// Plants the fault at a random place in the middle of the curve. nullopt if the job has no such
// curve, or one that is too short.
std::optional<PlantedJob> PlantInto(const RecordedJob& job, Plant plant, std::mt19937_64* random);

}  // namespace tacho::conditions
