#include "tests/conditions/synthetic.h"

#include <algorithm>
#include <random>
#include <string>

#include "tests/support/synthetic_window.h"

namespace tacho::conditions {
namespace {

using server::conditions::Detector;
using server::conditions::Finding;
using testing::Fault;
using testing::FaultKind;
using testing::FleetOptions;
using testing::SyntheticFleet;

constexpr double kUntil = 3600;
constexpr double kEvery = 10;  // Seconds between two looks.
// The number of the host or task that a fault has as its target, if it has one.
constexpr uint32_t kTarget = 3;

struct Scenario {
  const char* condition;
  const char* name;
  FaultKind kind;
  double amount;
  double limit_seconds;
  bool one_host = false;
  bool one_task = false;
};

constexpr Scenario kScenarios[] = {
    {"Stalled", "a host hangs", FaultKind::kHang, 1, 900, true},
    {"Straggling", "a host computes 30 % longer", FaultKind::kSlowHost, 0.3, 900, true},
    {"Straggling", "a host computes 10 % longer", FaultKind::kSlowHost, 0.1, 900, true},
    {"Diverged", "NaN on one task, then on all", FaultKind::kNan, 0, 120, false, true},
    {"Diverged", "loss grows by e every 50 steps", FaultKind::kDiverge, 50, 900},
    {"LossSpike", "loss doubles for 5 steps", FaultKind::kLossSpike, 1, 60},
    {"LossSpike", "loss is 20 % higher for 5 steps", FaultKind::kLossSpike, 0.2, 60},
    {"Plateau", "loss stays", FaultKind::kPlateau, 0, 2400},
    {"Oscillating", "loss swings by 20 % every step", FaultKind::kOscillate, 0.2, 900},
    {"GradientExploding", "norm grows by e every 10 steps", FaultKind::kGradExplode, 10, 300},
    {"GradientVanished", "norm falls by e every 10 steps", FaultKind::kGradVanish, 10, 600},
    {"WeightsFrozen", "updates are 0", FaultKind::kFrozen, 0, 300},
    {"Overfitting", "eval loss rises by 0.1 each 100 steps", FaultKind::kOverfit, 0.1, 2400},
    {"InputBound", "40 % of each step waits for input", FaultKind::kInputBound, 0.4, 900},
    {"LowUtilization", "chips a fifth as busy", FaultKind::kLowUse, 0.2, 900},
    {"SlowerThanBaseline", "all compute 50 % longer", FaultKind::kSlowdown, 0.5, 900},
    {"ThroughputDropped", "all compute 50 % longer", FaultKind::kSlowdown, 0.5, 900},
    {"SlowCollective", "the link between two tasks is slow", FaultKind::kSlowLink, 0.2, 300, true},
    {"MemoryLeak", "host leaks 20 MB a second", FaultKind::kHostLeak, 20e6, 2400, true},
    {"MemoryLeak", "chip leaks 5 MB a second", FaultKind::kHbmLeak, 5e6, 2400, true},
    {"MemoryPressure", "host leaks 200 MB a second", FaultKind::kHostLeak, 200e6, 2400, true},
    {"Throttled", "a chip at 30 % less clock", FaultKind::kThrottle, 0.3, 900, true},
    {"HardwareErrors", "2 uncorrected errors a minute", FaultKind::kEcc, 2, 600, true},
    {"HardwareErrors", "an XID a minute", FaultKind::kXid, 1, 600, true},
    {"ReplicaDisagreement", "one task's scalar is off", FaultKind::kReplicaDiffers, 1, 120, false,
     true},
    {"TaskMissing", "a task sends nothing more", FaultKind::kMissingTask, 0, 900, false, true},
    {"AgentSilent", "a host's agent is gone", FaultKind::kSilentAgent, 0, 900, true},
    {"TrainerSilent", "a trainer writes no rows", FaultKind::kSilentTrainer, 0, 900, true},
    {"ClockSkewed", "a clock is 30 s ahead", FaultKind::kClockSkew, 30, 900, true},
    {"DataLoss", "100 rows are lost", FaultKind::kDataLoss, 100, 300, true},
};

FleetOptions OptionsOf(uint64_t seed, uint32_t tasks) {
  FleetOptions options;
  options.seed = seed;
  options.tasks = tasks;
  options.max_points = 1000;
  options.eval_every = 50;
  options.eval_seconds = 2;
  options.baselines = {{.job = "synthetic", .attempt = 0, .steps = 2000, .step_time_median = 0.92}};
  return options;
}

bool NamesTarget(const Finding& finding) {
  if (finding.culprits.empty()) return false;
  const server::conditions::Culprit& first = finding.culprits.front();
  return first.host == testing::SyntheticHost(kTarget) || (first.task && *first.task == kTarget);
}

void Try(const Scenario& scenario, const Detector& detector, uint64_t seed, uint32_t tasks,
         SyntheticScore* score) {
  std::mt19937_64 random(seed);
  Fault fault{.kind = scenario.kind, .amount = scenario.amount};
  fault.at_seconds = std::uniform_real_distribution<double>(900, 1200)(random);
  if (scenario.one_host) fault.host = kTarget;
  if (scenario.one_task) fault.task = kTarget;
  // The fleet's spikes always last for five steps.
  FleetOptions options = OptionsOf(seed, tasks);
  options.collectives = detector.name == "SlowCollective";
  const SyntheticFleet fleet(options, {fault}, kUntil);
  ++score->trials;
  const bool target = scenario.one_host || scenario.one_task;
  score->targeted += target ? 1 : 0;
  const double last = std::min(kUntil, fault.at_seconds + scenario.limit_seconds);
  for (double t = fault.at_seconds + kEvery / 2; t < last;
       t += t < fault.at_seconds + 120 ? kEvery / 2 : kEvery) {
    const Finding finding = detector.detect(fleet.At(t));
    if (!finding.present) continue;
    ++score->found;
    score->right_culprit += target && NamesTarget(finding) ? 1 : 0;
    score->seconds.push_back(t - fault.at_seconds);
    const auto then = fleet.StepAt(fault.at_seconds);
    const auto now = fleet.StepAt(t);
    if (then && now) score->steps.push_back(static_cast<double>(*now - *then));
    return;
  }
}

}  // namespace

std::vector<SyntheticScore> ScoreFaults(const std::vector<Detector>& detectors,
                                        const SyntheticOptions& options) {
  std::vector<SyntheticScore> scores;
  for (const Scenario& scenario : kScenarios) {
    const auto detector =
        std::find_if(detectors.begin(), detectors.end(),
                     [&](const Detector& each) { return each.name == scenario.condition; });
    if (detector == detectors.end()) continue;
    SyntheticScore score{.condition = scenario.condition, .fault = scenario.name};
    for (size_t i = 0; i < options.trials; ++i)
      Try(scenario, *detector, 100 + i, options.tasks, &score);
    scores.push_back(std::move(score));
  }
  return scores;
}

HealthyScore ScoreHealthy(const std::vector<Detector>& detectors, const SyntheticOptions& options) {
  HealthyScore score;
  score.present.resize(detectors.size());
  score.episodes.resize(detectors.size());
  for (size_t i = 0; i < options.trials; ++i) {
    FleetOptions healthy = OptionsOf(500 + i, options.tasks);
    healthy.collectives = true;
    const SyntheticFleet fleet(healthy, {}, options.healthy_seconds);
    std::vector<bool> before(detectors.size());
    for (double t = kEvery; t < options.healthy_seconds; t += 3 * kEvery) {
      const server::conditions::JobWindow window = fleet.At(t);
      ++score.moments;
      for (size_t k = 0; k < detectors.size(); ++k) {
        const bool present = detectors[k].detect(window).present;
        score.present[k] += present ? 1 : 0;
        score.episodes[k] += present && !before[k] ? 1 : 0;
        before[k] = present;
      }
    }
    score.hours += options.healthy_seconds / 3600;
  }
  return score;
}

}  // namespace tacho::conditions
