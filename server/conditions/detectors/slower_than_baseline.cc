#include "server/conditions/detectors/slower_than_baseline.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/conditions/measures/robust.h"
#include "server/conditions/measures/step_times.h"

namespace tacho::server::conditions {
namespace {

// The median over baselines of this job, or of others; 0 if there are none.
double Reference(const JobWindow& window, bool own, uint64_t min_steps) {
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

}  // namespace

Finding DetectSlowerThanBaseline(const JobWindow& window,
                                 const SlowerThanBaselineSettings& settings) {
  if (window.ended) return NotPresent();
  const double earlier = Reference(window, true, settings.min_baseline_steps);
  const double others = Reference(window, false, settings.min_baseline_steps);
  if (earlier <= 0 && others <= 0) return NotJudged();
  std::vector<StepTime> steps = NetStepTimes(window);
  if (steps.size() * 2 < settings.steps || steps.empty()) return NotJudged();
  if (steps.size() > settings.steps) {
    steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(settings.steps));
  }
  const double median = MedianSeconds(steps);
  const bool by_earlier = earlier > 0 && median > settings.min_ratio * earlier;
  const bool by_others = others > 0 && median > settings.min_ratio * others;
  if (!by_earlier && !by_others) return NotPresent();

  const bool tell_earlier = by_earlier && (!by_others || earlier <= others);
  const double reference = tell_earlier ? earlier : others;
  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  finding.reason = tell_earlier ? "EarlierAttempts" : "SameConfiguration";
  finding.step = steps.back().step;
  finding.figures = {{"step_time_median", median, "s"},
                     {"baseline", reference, "s"},
                     {"ratio", median / reference, "1"},
                     {"threshold_ratio", settings.min_ratio, "1"}};
  finding.message =
      absl::StrFormat("A step takes %.3g s, %.0f%% longer than the %.3g s of %s", median,
                      100 * (median / reference - 1), reference,
                      tell_earlier ? "earlier attempts" : "other jobs of the same configuration");
  return finding;
}

}  // namespace tacho::server::conditions
