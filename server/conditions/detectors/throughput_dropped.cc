#include "server/conditions/detectors/throughput_dropped.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/conditions/measures/change_point.h"
#include "server/conditions/measures/robust.h"
#include "server/conditions/measures/step_times.h"
#include "server/conditions/window/signal.h"

namespace tacho::server::conditions {
namespace {

constexpr double kMaxChance = 1e-6;
constexpr double kDeviations = 3;

// Tokens of each step, of the first task that counts them. Where the counter fell (a restart within
// the attempt) or rows are missing, that step has none.
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
  return {values.begin() + static_cast<std::ptrdiff_t>(begin),
          values.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

Finding DetectThroughputDropped(const JobWindow& window,
                                const ThroughputDroppedSettings& settings) {
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
  if (cost.size() < settings.min_before + settings.min_after) return NotJudged();

  const ChangePoint change = FindRise(cost, std::min(settings.min_before, settings.min_after));
  if (change.p >= kMaxChance || change.index < settings.min_before ||
      cost.size() - change.index < settings.min_after) {
    return NotPresent();
  }
  const std::vector<double> early = Part(cost, 0, change.index);
  const double before = Median(early);
  const double after = Median(Part(cost, change.index, cost.size()));
  const double newest = Median(Part(cost, cost.size() - settings.min_after / 2, cost.size()));
  const double noise = ScaledMad(early, before);
  if (after <= settings.min_ratio * before || newest <= settings.min_ratio * before ||
      after - before <= kDeviations * noise) {
    return NotPresent();
  }

  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  finding.reason = by_tokens ? "TokensRate" : "StepTime";
  finding.step = counted[change.index].step;
  finding.since_ns = counted[change.index].time_ns;
  const char* unit = by_tokens ? "s/{token}" : "s";
  finding.figures = {{by_tokens ? "seconds_per_token_before" : "step_time_before", before, unit},
                     {by_tokens ? "seconds_per_token_after" : "step_time_after", after, unit},
                     {"ratio", after / before, "1"},
                     {"threshold_ratio", settings.min_ratio, "1"},
                     {"chance", change.p, "1"}};
  finding.message = by_tokens
                        ? absl::StrFormat(
                              "Since step %d it trains on %.4g tokens a second, %.0f%% fewer "
                              "than the %.4g before",
                              *finding.step, 1 / after, 100 * (1 - before / after), 1 / before)
                        : absl::StrFormat(
                              "Since step %d a step takes %.3g s, %.0f%% longer than the %.3g s "
                              "before",
                              *finding.step, after, 100 * (after / before - 1), before);
  return finding;
}

}  // namespace tacho::server::conditions
