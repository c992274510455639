// How soon conditions are raised, and how often without a cause, in jobs that record their phases
// and in jobs that do not: random jobs and faults on the clock of a synthetic fleet, judged as the
// engine judges them, with `for`, `clear_after` and the profile that each job gets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/conditions/condition_settings.h"

namespace tacho::conditions {

struct ProfileFleetOptions {
  uint64_t seed = 1;
  size_t trials = 5;         // Of each kind of fault, for jobs with phases and for those without.
  size_t healthy_jobs = 12;  // Of each of the two,
  double healthy_seconds = 7200;  // each for so long.
  size_t points = 500;            // Of a series in the window, at most.
};

// One kind of fault in jobs of one kind.
struct KindScore {
  size_t trials = 0;
  size_t found = 0;    // Within kFindWithin.
  size_t to_name = 0;  // Found ones with a host to name,
  size_t named = 0;    // named first when the condition was raised.
  std::vector<double> seconds;
};

struct ProfileScore {
  std::map<std::string, KindScore> kinds;
  size_t false_alarms = 0;  // Raised without a cause, in any run.
  double hours = 0;         // Of jobs without a fault, or before it.
  double fast_share = 0;    // Of the time in which a job of the healthy ones was judged as fast.
  std::vector<std::string> remarks;  // Each false alarm and each miss.
};

inline constexpr double kFindWithin = 600;

// `records`: the jobs record their phases.
ProfileScore ScoreProfiles(const server::conditions::ConditionSettings& settings, bool records,
                           const ProfileFleetOptions& options);

}  // namespace tacho::conditions
