#include "server/conditions/detectors/gradient_vanished.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {

Finding DetectGradientVanished(const JobWindow& window, const GradientVanishedSettings& settings) {
  const Curve curve = JobCurve(window, Signal::kGradNorm);
  const size_t n = curve.points.size();
  if (n < settings.values) return NotJudged();
  const size_t end = n - settings.values;
  double threshold = settings.floor;
  double before = 0;
  if (end >= settings.least_reference) {
    // Zeros of before say nothing of what the gradient can be.
    std::vector<double> norms = curve.Values(end - std::min<size_t>(end, settings.reference), end);
    norms.erase(std::remove(norms.begin(), norms.end(), 0.0), norms.end());
    before = Quantile(std::move(norms), 0.75);
    threshold = std::max(threshold, settings.share * before);
  }
  size_t first = n;
  while (first > 0 && curve.points[first - 1].value <= threshold) --first;
  if (n - first < settings.values) return NotPresent();

  const double now = Median(curve.Values(end, n));
  const CurvePoint& since = curve.points[first];
  Finding finding = NotPresent();
  finding.present = true;
  finding.severity = Severity::kWarning;
  finding.reason = now == 0 ? "GradientZero" : "GradientVanished";
  finding.since_ns = since.time_ns;
  finding.step = since.step;
  finding.message = absl::StrCat(curve.metric, " is ", ValueText(now), " since step ", since.step,
                                 ", at most ", ValueText(threshold));
  if (before > 0) absl::StrAppend(&finding.message, "; it was about ", ValueText(before));
  finding.figures = {
      {"norm", now, "1"}, {"threshold", threshold, "1"}, {"norm_before", before, "1"}};
  Culprit culprit;
  culprit.metric = curve.metric;
  culprit.step = since.step;
  culprit.score = now;
  finding.culprits.push_back(std::move(culprit));
  return finding;
}

}  // namespace tacho::server::conditions
