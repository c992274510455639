// SlowerThanBaseline: steps take longer than in earlier attempts of this job, or in other jobs with
// the same configuration.
//
// Definition. Let T be the median of the newest `steps` net step times (step_times.h: without
// checkpoints, evaluations and compiling), and B the median of the baselines' medians, each over at
// least min_baseline_steps. The condition is true if T > min_ratio * B, where B is over earlier
// attempts (reason EarlierAttempts), or over other jobs with the same config_fingerprint (reason
// SameConfiguration). If both hold, the finding reports the larger ratio. There are no culprits:
// Straggling, Throttled and InputBound may explain it.
//
// Needs a baseline and half of `steps`. Limits: it cannot see that somebody changed a batch or a
// number of chips on purpose; give each attempt its config_fingerprint and batch_size.
//
// Source: ours. Fleets act on a shift of 10 to 15 %; run-to-run variation of step times was 20 %
// before, and 1 % after, weeding out bad nodes: Guard (arXiv 2605.17879).
//
//
// ThroughputDropped: the job has become slower than it was earlier in the same attempt.
//
// Definition. The series is seconds per token (net step time over the tokens of the step) if tokens
// are counted, else the net step time. The change point is the split t that the Mann-Whitney test
// finds least likely,
//   U(t) = 2 * (R(1) + … + R(t)) - t * (n + 1)      R: ranks; a slower part after t makes it low
//   z(t) = -U(t) / sqrt(t * (n - t) * (n + 1) / 3)
// and it is a drop if, with `before` and `after` the medians on both sides of it,
//   after > min_ratio * before,
//   after - before > 3 * 1.4826 * MAD(values before),
//   p = n * P(Z > z) < 1e-6,
//   at least min_before values are before it and min_after are after it, and
//   the median of the newest min_after/2 values is also > min_ratio * before.
// Ranks make single slow steps harmless, however long they take. The condition shows a change: once
// the whole window is slow, there is nothing to compare with, and SlowerThanBaseline takes over, if
// there is a baseline. There are no culprits.
//
// A slow drift has no change point. The window covers the whole attempt, older steps more sparsely.
// It is cut into up to 24 equal times, at least 10 of them with steps and at least an hour in all.
// The job drifts (reason Drift) if the medians of these rise steadily (Kendall's tau >= 0.7, z >=
// 4), and the robust line through them ends above min_drift times its beginning. Culprits are the
// tasks whose own time before the barrier (compute) drifts in the same way, if they are fewer than
// half; score: the ratio of end and beginning.
//
// Needs min_before + min_after steps. Limits: it cannot tell a fault from an intended change, such
// as longer sequences, or a larger batch without a count of tokens. Takes O(n log n) in steps.
//
// Source: D. M. Hawkins, Q. Deng, "A nonparametric change-point control chart", Journal of Quality
// Technology 42 (2010). Pettitt's statistic (1979) is U without its scale, and misses late changes.
// The bound of p is low because step times are not independent; ratios are ours.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/robust.h"
#include "server/conditions/measures/step_times.h"
#include "server/conditions/window/signal.h"

namespace tacho::server::conditions {
namespace {

// The median over the baselines of this job (`own`), or of others; 0 if there are none.
double MedianOfBaselines(const JobWindow& window, bool own, uint64_t min_steps) {
  std::vector<double> medians;
  for (const Baseline& baseline : window.baselines) {
    if ((baseline.job == window.job) != own || baseline.steps < min_steps) continue;
    if (own && baseline.attempt == window.attempt) continue;
    if (std::isfinite(baseline.step_time_median) && baseline.step_time_median > 0) {
      medians.push_back(baseline.step_time_median);
    }
  }
  return Median(std::move(medians));
}

constexpr double kMaxChance = 1e-6;
constexpr double kDeviations = 3;

// Tokens of each step, from the first task that counts them. A step has none where the counter fell
// (a restart within the attempt) or rows are missing.
std::map<int64_t, double> TokensByStep(const JobWindow& window) {
  std::map<int64_t, double> tokens;
  for (const TaskWindow& task : window.tasks) {
    const Track* track = FindTrack(task.tracks, Signal::kTokens);
    if (track == nullptr) continue;
    for (size_t i = 1; i < track->points.size(); ++i) {
      const Point& point = track->points[i];
      const Point& before = track->points[i - 1];
      if (before.step == kNoPointStep || point.step <= before.step) continue;
      const double each =
          (point.value - before.value) / static_cast<double>(point.step - before.step);
      if (std::isfinite(each) && each > 0) tokens[point.step] = each;
    }
    break;
  }
  return tokens;
}

std::vector<double> Part(const std::vector<double>& values, size_t begin, size_t end) {
  TACHO_CHECK(begin <= end && end <= values.size());
  return {values.begin() + static_cast<std::ptrdiff_t>(begin),
          values.begin() + static_cast<std::ptrdiff_t>(end)};
}

// `before` and `after` are seconds per step, or per token.
std::string DropMessage(bool by_tokens, int64_t step, double before, double after) {
  if (by_tokens) {
    return absl::StrFormat(
        "Since step %d the job trains on %.4g tokens a second, %.0f%% fewer than the %.4g before",
        step, 1 / after, 100 * (1 - before / after), 1 / before);
  }
  return absl::StrFormat("Since step %d a step takes %.3g s, %.0f%% longer than the %.3g s before",
                         step, after, 100 * (after / before - 1), before);
}

constexpr size_t kDriftParts = 24;
constexpr size_t kLeastDriftParts = 10;
constexpr double kLeastDriftSeconds = 3600;
constexpr double kLeastDriftTau = 0.7;
constexpr double kLeastDriftZ = 4;

struct Timed {
  int64_t time_ns = 0;
  double value = 0;
};

struct Drift {
  double begin = 0;
  double end = 0;
  double hours = 0;
  double tau = 0;
  double ratio() const { return end / begin; }
};

// `values` ascend by time. nullopt: too few, or no steady rise.
std::optional<Drift> DriftOf(const std::vector<Timed>& values) {
  if (values.size() < kLeastDriftParts) return std::nullopt;
  const int64_t begin_ns = values.front().time_ns;
  const double span = Seconds(values.back().time_ns - begin_ns);
  if (span < kLeastDriftSeconds) return std::nullopt;
  std::vector<std::vector<double>> parts(kDriftParts);
  for (const Timed& one : values) {
    const double at = Seconds(one.time_ns - begin_ns) / span * static_cast<double>(kDriftParts);
    parts[std::min(kDriftParts - 1, static_cast<size_t>(std::max(0.0, at)))].push_back(one.value);
  }
  std::vector<double> x;
  std::vector<double> y;
  for (size_t i = 0; i < kDriftParts; ++i) {
    if (parts[i].empty()) continue;
    x.push_back(static_cast<double>(i));
    y.push_back(Median(std::move(parts[i])));
  }
  if (x.size() < kLeastDriftParts) return std::nullopt;
  const RobustTrend trend = FitTrend(x, y);
  const Drift drift = {.begin = trend.At(x.front()),
                       .end = trend.At(x.back()),
                       .hours = span / 3600,
                       .tau = trend.tau};
  if (!trend.valid || trend.tau < kLeastDriftTau || trend.z < kLeastDriftZ || drift.begin <= 0) {
    return std::nullopt;
  }
  return drift;
}

// The tasks whose own time drifts, the worst first; none if they are half of all.
std::vector<std::pair<const TaskWindow*, double>> DriftingTasks(const JobWindow& window,
                                                                double min_drift) {
  std::vector<std::pair<const TaskWindow*, double>> drifting;
  for (const TaskWindow& task : window.tasks) {
    const Track* track = FindTrack(task.tracks, Signal::kCompute);
    if (track == nullptr) continue;
    std::vector<Timed> values;
    for (const Point& point : track->points) {
      if (std::isfinite(point.value)) values.push_back({point.time_ns, point.value});
    }
    const std::optional<Drift> drift = DriftOf(values);
    if (drift.has_value() && drift->ratio() > min_drift)
      drifting.emplace_back(&task, drift->ratio());
  }
  if (drifting.size() * 2 >= window.tasks.size()) return {};
  std::stable_sort(drifting.begin(), drifting.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return drifting;
}

// `steps` and `cost` belong together.
Finding DetectDrift(const JobWindow& window, const std::vector<StepTime>& steps,
                    const std::vector<double>& cost, bool by_tokens, double min_drift) {
  TACHO_CHECK(steps.size() == cost.size());
  std::vector<Timed> values;
  for (size_t i = 0; i < steps.size(); ++i) values.push_back({steps[i].time_ns, cost[i]});
  const std::optional<Drift> drift = DriftOf(values);
  if (!drift.has_value() || drift->ratio() <= min_drift) return NotPresent();
  Finding finding = Present(
      Severity::kWarning, "Drift",
      absl::StrFormat("A %s takes %.0f%% longer than %.1f h ago, and has become slower "
                      "little by little since then",
                      by_tokens ? "token" : "step", 100 * (drift->ratio() - 1), drift->hours));
  finding.step = steps.front().step;
  finding.since_ns = steps.front().time_ns;
  finding.figures = {{"ratio", drift->ratio(), "1"},
                     {"threshold_ratio", min_drift, "1"},
                     {"hours", drift->hours, "h"},
                     {"tau", drift->tau, "1"}};
  for (const auto& [task, ratio] : DriftingTasks(window, min_drift)) {
    finding.BlameTask(*task, ratio);
  }
  return finding;
}

}  // namespace

Finding DetectSlowerThanBaseline(const JobWindow& window,
                                 const Progress::SlowerThanBaseline& settings) {
  if (window.ended) return NotPresent();
  const double earlier = MedianOfBaselines(window, true, settings.min_baseline_steps());
  const double others = MedianOfBaselines(window, false, settings.min_baseline_steps());
  if (earlier <= 0 && others <= 0) return NotJudged();
  std::vector<StepTime> steps = NetStepTimes(window);
  if (steps.size() * 2 < settings.steps() || steps.empty()) return NotJudged();
  if (steps.size() > settings.steps()) {
    steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(settings.steps()));
  }
  const double median = MedianSeconds(steps);
  const bool by_earlier = earlier > 0 && median > settings.min_ratio() * earlier;
  const bool by_others = others > 0 && median > settings.min_ratio() * others;
  if (!by_earlier && !by_others) return NotPresent();

  // The faster baseline shows the larger loss.
  const bool against_earlier = by_earlier && (!by_others || earlier <= others);
  const double reference = against_earlier ? earlier : others;
  Finding finding =
      Present(Severity::kWarning, against_earlier ? "EarlierAttempts" : "SameConfiguration",
              absl::StrFormat(
                  "A step takes %.3g s, %.0f%% longer than the %.3g s of %s", median,
                  100 * (median / reference - 1), reference,
                  against_earlier ? "earlier attempts" : "other jobs with the same configuration"));
  finding.step = steps.back().step;
  finding.figures = {{"step_time_median", median, "s"},
                     {"baseline", reference, "s"},
                     {"ratio", median / reference, "1"},
                     {"threshold_ratio", settings.min_ratio(), "1"}};
  return finding;
}

Finding DetectThroughputDropped(const JobWindow& window,
                                const Progress::ThroughputDropped& settings) {
  if (window.ended) return NotPresent();
  std::vector<StepTime> steps = NetStepTimes(window);
  const std::map<int64_t, double> tokens = TokensByStep(window);
  const bool by_tokens = tokens.size() * 2 > steps.size();
  std::vector<double> cost;
  std::vector<StepTime> counted;
  for (const StepTime& step : steps) {
    const auto of_step = tokens.find(step.step);
    if (by_tokens && of_step == tokens.end()) continue;
    cost.push_back(by_tokens ? step.seconds / of_step->second : step.seconds);
    counted.push_back(step);
  }
  if (cost.size() < settings.min_before() + settings.min_after()) return NotJudged();
  Finding drift = DetectDrift(window, counted, cost, by_tokens, settings.min_drift());
  if (drift.present) return drift;

  const ChangePoint change =
      FindRise(cost, std::min<size_t>(settings.min_before(), settings.min_after()));
  if (change.p >= kMaxChance || change.index < settings.min_before() ||
      cost.size() - change.index < settings.min_after()) {
    return NotPresent();
  }
  const std::vector<double> early = Part(cost, 0, change.index);
  const double before = Median(early);
  const double after = Median(Part(cost, change.index, cost.size()));
  const double newest = Median(Part(cost, cost.size() - settings.min_after() / 2, cost.size()));
  const double noise = ScaledMad(early, before);
  if (after <= settings.min_ratio() * before || newest <= settings.min_ratio() * before ||
      after - before <= kDeviations * noise) {
    return NotPresent();
  }

  TACHO_CHECK(change.index < counted.size());
  const StepTime& since = counted[change.index];
  Finding finding = Present(Severity::kWarning, by_tokens ? "TokensRate" : "StepTime",
                            DropMessage(by_tokens, since.step, before, after));
  finding.step = since.step;
  finding.since_ns = since.time_ns;
  const char* unit = by_tokens ? "s/{token}" : "s";
  finding.figures = {{by_tokens ? "seconds_per_token_before" : "step_time_before", before, unit},
                     {by_tokens ? "seconds_per_token_after" : "step_time_after", after, unit},
                     {"ratio", after / before, "1"},
                     {"threshold_ratio", settings.min_ratio(), "1"},
                     {"chance", change.p, "1"}};
  return finding;
}

}  // namespace tacho::server::conditions
