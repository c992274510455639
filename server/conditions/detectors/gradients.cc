// GradientExploding: gradients grow out of proportion to what they were.
//
// Definition. The median of the newest `values` finite gradient norms is more than `factor` times
// the median of the up to `reference` norms before, and more than `sigmas` standard deviations
// above it on a logarithmic scale (norms scatter as products do; 1.4826 MAD of the logarithms). Or
// it is above `limit`, if that is set. Infinite norms do not count: a loss scaler makes single
// ones, and Diverged counts those that last. Source: ours. Clipping by norm (Pascanu et al. 2013)
// hides the effect of a large gradient, not its norm.
//
// Needs grad_norm before clipping, `least_reference` + `values` points; a norm after clipping
// cannot explode. Score: the norm relative to the reference. Limits: growth that takes longer than
// the reference becomes the new reference.
//
//
// GradientVanished: gradients are almost zero, so the model learns nothing.
//
// Definition. Each of the newest `values` finite gradient norms is at most `floor`, or at most
// `share` of the upper quartile of the up to `reference` norms before. (The upper quartile keeps
// the condition true for long.) If all recorded norms are small from the start, only `floor`
// counts. Source: ours; vanishing gradients as in Hochreiter 1991, Bengio et al. 1994. A loss scale
// that is too low in float16 makes exact zeros (Micikevicius et al. 2018): then the reason is
// GradientZero.
//
// Needs grad_norm, `values` points. Score: the newest median norm; lower is worse. Limits: a model
// that has memorized its data has no gradient either.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

struct Reference {
  double median = 0;     // The median of the norms.
  double threshold = 0;  // The newest median must not exceed it.
};

std::optional<Reference> ReferenceOf(const Curve& curve,
                                     const Curves::GradientExploding& settings) {
  const size_t end = curve.points.size() - settings.values();
  if (end < settings.least_reference()) return std::nullopt;
  std::vector<double> logs;
  for (size_t i = end - std::min<size_t>(end, settings.reference()); i < end; ++i) {
    if (curve.points[i].value > 0) logs.push_back(std::log(curve.points[i].value));
  }
  if (logs.size() < settings.least_reference()) return std::nullopt;
  const double median = Median(logs);
  const double above =
      std::max(std::log(settings.factor()), settings.sigmas() * ScaledMad(logs, median));
  return Reference{std::exp(median), std::exp(median + above)};
}

// The index where the newest run of points that `in_run` accepts begins; the number of points if it
// does not accept the newest.
template <typename InRun>
size_t RunStart(const Curve& curve, const InRun& in_run) {
  size_t first = curve.points.size();
  while (first > 0 && in_run(curve.points[first - 1].value)) --first;
  return first;
}

}  // namespace

Finding DetectGradientExploding(const JobWindow& window,
                                const Curves::GradientExploding& settings) {
  const Curve curve = JobCurve(window, Signal::kGradNorm);
  const size_t n = curve.points.size();
  if (n < settings.values()) return NotJudged();
  const auto reference = ReferenceOf(curve, settings);
  const double now = Median(curve.Values(n - settings.values(), n));
  const bool above_limit = settings.limit() > 0 && now > settings.limit();
  if (!reference && settings.limit() <= 0) return NotJudged();
  const bool grew = reference && now > reference->threshold;
  if (!grew && !above_limit) return NotPresent();

  const double threshold = grew ? reference->threshold : settings.limit();
  const size_t first = RunStart(curve, [&](double norm) { return norm > threshold; });
  TACHO_CHECK(n > 0);
  const CurvePoint& since = curve.points[std::min(first, n - 1)];
  std::string message = absl::StrCat(curve.metric, " is ", ValueText(now), " since step ",
                                     since.step, ", above ", ValueText(threshold));
  if (reference) absl::StrAppend(&message, "; before it was about ", ValueText(reference->median));
  Finding finding = Present(
      Severity::kWarning, grew ? "GradientNormGrew" : "GradientNormAboveLimit", std::move(message));
  finding.since_ns = since.time_ns;
  finding.step = since.step;
  finding.figures = {{"norm", now, "1"}, {"threshold", threshold, "1"}};
  if (reference) finding.AddFigure("norm_before", reference->median, "1");
  finding.BlameMetric(curve.metric, since.step, reference ? now / reference->median : 0);
  return finding;
}

Finding DetectGradientVanished(const JobWindow& window, const Curves::GradientVanished& settings) {
  const Curve curve = JobCurve(window, Signal::kGradNorm);
  const size_t n = curve.points.size();
  if (n < settings.values()) return NotJudged();
  const size_t end = n - settings.values();
  double threshold = settings.floor();
  double before = 0;
  if (end >= settings.least_reference()) {
    // Earlier zeros do not show how large the gradient can be.
    std::vector<double> norms =
        curve.Values(end - std::min<size_t>(end, settings.reference()), end);
    norms.erase(std::remove(norms.begin(), norms.end(), 0.0), norms.end());
    before = Quantile(std::move(norms), 0.75);
    threshold = std::max(threshold, settings.share() * before);
  }
  const size_t first = RunStart(curve, [&](double norm) { return norm <= threshold; });
  if (n - first < settings.values()) return NotPresent();

  const double now = Median(curve.Values(end, n));
  const CurvePoint& since = curve.points[first];
  std::string message = absl::StrCat(curve.metric, " is ", ValueText(now), " since step ",
                                     since.step, ", at most ", ValueText(threshold));
  if (before > 0) absl::StrAppend(&message, "; before it was about ", ValueText(before));
  Finding finding = Present(Severity::kWarning, now == 0 ? "GradientZero" : "GradientVanished",
                            std::move(message));
  finding.since_ns = since.time_ns;
  finding.step = since.step;
  finding.figures = {
      {"norm", now, "1"}, {"threshold", threshold, "1"}, {"norm_before", before, "1"}};
  finding.BlameMetric(curve.metric, since.step, now);
  return finding;
}

}  // namespace tacho::server::conditions
