#include "tests/conditions/scenarios.h"

#include <algorithm>
#include <optional>

#include "tests/support/synthetic_window.h"

namespace tacho::conditions {
namespace {

using server::conditions::Detector;
using server::conditions::Finding;
using testing::Scenario;

// Seconds between two looks, in the ten minutes after a fault and otherwise.
constexpr double kEvery = 10;
constexpr double kEveryElse = 60;
constexpr double kClosely = 600;
// A window with only this many values of each track costs less to make, and is long enough for all
// detectors of these scenarios.
constexpr size_t kPoints = 700;

bool MayFollow(const Scenario& scenario, const std::string& condition) {
  return std::find(scenario.may_follow.begin(), scenario.may_follow.end(), condition) !=
         scenario.may_follow.end();
}

bool Names(const Scenario& scenario, const Finding& finding) {
  if (finding.culprits.empty()) return false;
  const server::conditions::Culprit& first = finding.culprits.front();
  // A finding about a task need not name its host, nor a finding about a host its task.
  if (scenario.host && !first.host.empty()) return first.host == *scenario.host;
  return scenario.task && first.task == scenario.task;
}

double Pause(const Scenario& scenario, double t) {
  if (scenario.condition.empty()) return kEveryElse;
  if (t < scenario.at_seconds) return std::min(kEveryElse, scenario.at_seconds + kEvery - t);
  return t < scenario.at_seconds + kClosely ? kEvery : kEveryElse;
}

void Judge(const Scenario& scenario, const Detector& detector, const Finding& finding,
           double seconds, std::optional<double>* found, bool* wrong, ScenarioScore* score) {
  const bool expected = scenario.condition == detector.name;
  if (!finding.present) return;
  if (expected && seconds >= scenario.at_seconds) {
    if (*found) return;
    *found = seconds - scenario.at_seconds;
    const bool target = scenario.host.has_value() || scenario.task.has_value();
    score->to_name += target ? 1 : 0;
    score->named += target && Names(scenario, finding) ? 1 : 0;
  } else if (!*wrong && (expected || !MayFollow(scenario, detector.name))) {
    *wrong = true;
    ++score->false_runs;
    score->remarks.push_back("false: " + scenario.name + ", " + finding.reason + ": " +
                             finding.message);
  }
}

}  // namespace

std::map<std::string, ScenarioScore> ScoreScenarios(const std::vector<Detector>& detectors,
                                                    const std::vector<Scenario>& scenarios,
                                                    double* hours) {
  std::map<std::string, ScenarioScore> scores;
  for (const Scenario& scenario : scenarios) {
    testing::FleetOptions options = scenario.fleet;
    options.max_points = kPoints;
    const testing::SyntheticFleet fleet(options, scenario.faults, scenario.duration_seconds);
    std::vector<std::optional<double>> found(detectors.size());
    std::vector<char> wrong(detectors.size());
    for (double t = kEvery; t <= scenario.duration_seconds; t += Pause(scenario, t)) {
      const server::conditions::JobWindow window = fleet.At(t);
      for (size_t k = 0; k < detectors.size(); ++k) {
        bool was_wrong = wrong[k] != 0;
        Judge(scenario, detectors[k], detectors[k].detect(window), t, &found[k], &was_wrong,
              &scores[detectors[k].name]);
        wrong[k] = was_wrong ? 1 : 0;
      }
    }
    for (size_t k = 0; k < detectors.size(); ++k) {
      if (detectors[k].name != scenario.condition) continue;
      ScenarioScore& score = scores[detectors[k].name];
      ++score.trials;
      if (found[k]) {
        ++score.found;
        score.seconds.push_back(*found[k]);
      } else {
        score.remarks.push_back("missed: " + scenario.name);
      }
    }
    *hours += scenario.duration_seconds / 3600;
  }
  return scores;
}

}  // namespace tacho::conditions
