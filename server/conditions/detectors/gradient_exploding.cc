#include "server/conditions/detectors/gradient_exploding.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

struct Reference {
  double median = 0;     // Of the norms.
  double threshold = 0;  // Of the newest median.
};

std::optional<Reference> ReferenceOf(const Curve& curve,
                                     const GradientExplodingSettings& settings) {
  const size_t end = curve.points.size() - settings.values;
  if (end < settings.least_reference) return std::nullopt;
  std::vector<double> logs;
  for (size_t i = end - std::min<size_t>(end, settings.reference); i < end; ++i) {
    if (curve.points[i].value > 0) logs.push_back(std::log(curve.points[i].value));
  }
  if (logs.size() < settings.least_reference) return std::nullopt;
  const double median = Median(logs);
  const double above =
      std::max(std::log(settings.factor), settings.sigmas * ScaledMad(logs, median));
  return Reference{std::exp(median), std::exp(median + above)};
}

}  // namespace

Finding DetectGradientExploding(const JobWindow& window,
                                const GradientExplodingSettings& settings) {
  const Curve curve = JobCurve(window, Signal::kGradNorm);
  const size_t n = curve.points.size();
  if (n < settings.values) return NotJudged();
  const auto reference = ReferenceOf(curve, settings);
  const double now = Median(curve.Values(n - settings.values, n));
  const bool above_limit = settings.limit > 0 && now > settings.limit;
  if (!reference && settings.limit <= 0) return NotJudged();
  const bool grew = reference && now > reference->threshold;
  if (!grew && !above_limit) return NotPresent();

  const double threshold = grew ? reference->threshold : settings.limit;
  size_t first = n;
  while (first > 0 && curve.points[first - 1].value > threshold) --first;
  const CurvePoint& since = curve.points[std::min(first, n - 1)];
  Finding finding = NotPresent();
  finding.present = true;
  finding.severity = Severity::kWarning;
  finding.reason = grew ? "GradientNormGrew" : "GradientNormAboveLimit";
  finding.since_ns = since.time_ns;
  finding.step = since.step;
  finding.message = absl::StrCat(curve.metric, " is ", ValueText(now), " since step ", since.step,
                                 ", above ", ValueText(threshold));
  if (reference) absl::StrAppend(&finding.message, "; it was about ", ValueText(reference->median));
  finding.figures = {{"norm", now, "1"}, {"threshold", threshold, "1"}};
  Culprit culprit;
  culprit.metric = curve.metric;
  culprit.step = since.step;
  if (reference) {
    finding.figures.push_back({"norm_before", reference->median, "1"});
    culprit.score = now / reference->median;
  }
  finding.culprits.push_back(std::move(culprit));
  return finding;
}

}  // namespace tacho::server::conditions
