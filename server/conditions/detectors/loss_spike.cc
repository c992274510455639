// LossSpike: the loss has jumped above its own recent course.
//
// Definition. The detector walks along the loss and compares each value with the `reference_points`
// values before it that belong to no spike. Their level is the median of the newest quarter. Their
// noise is the distance of each from the median of the 9 around it, as 1.4826 MAD or the 95 %
// quantile over 1.645, whichever is more (losses of single batches are skewed upwards). A value is
// high if it is above level + max(sigmas × noise, least_relative × |level|). A spike begins when
// `values` of the newest `of_values` are high, so a single huge value, a bad batch, is no spike. It
// ends when the median of the newest `values` falls below half of that distance. After
// `give_up_points` the new level is accepted: the data may have changed. The condition is true from
// the start of a spike to its end.
//
// It is not true where the learning rate rose to more than `rate_jump` times its value within the
// newest reference, or within 16 values after the spike began, where rates are recorded less often:
// a schedule with warm restarts makes the loss jump by design (Loshchilov & Hutter, SGDR, 2017).
// Nor is it true if three spikes before it came at regular distances, between 2/3 and 3/2 of their
// median, and ended: such a loss swings, which is for Oscillating to say.
//
// Source: ours, after the practice of watching for spikes in training of large models (PaLM,
// Chowdhery et al. 2022, §5.1; OPT, Zhang et al. 2022, §2.5).
//
// Needs loss, `least_reference` values. The reason is LossSpikeNotRecovered, a warning, once the
// spike lasts longer than `slow_points`. Before that it may end by itself, and is an info. Step:
// its first high value. Score: its height in standard deviations of the noise. Limits: looks at the
// newest 1,024 values; a loss that is logged as an average over many steps shows a short spike in
// too few values.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

constexpr size_t kMostPoints = 1024;
// The threshold is computed again after this many values: it costs four medians.
constexpr size_t kRefresh = 8;

// The median of this many values is the course of the loss; the noise is the distance from it.
constexpr size_t kCourse = 9;

// So many spikes at regular distances are swings.
constexpr size_t kRegularSpikes = 3;
// A learning rate that is recorded this many values late still explains a jump.
constexpr size_t kRateLate = 16;

struct Threshold {
  double level = 0;
  double noise = 0;
  double distance = 0;  // A value this far above the level is high.
};

Threshold ThresholdOf(const std::deque<double>& reference, const Curves::LossSpike& settings) {
  const size_t n = reference.size();
  const std::vector<double> values(reference.begin(), reference.end());
  Threshold threshold;
  TACHO_CHECK(n > 0);
  threshold.level = Median({reference.end() - static_cast<std::ptrdiff_t>(n / 4), reference.end()});
  threshold.noise = UpperNoise(OffRunningMedian(values, kCourse));
  threshold.distance = std::max(settings.sigmas() * threshold.noise,
                                settings.least_relative() * std::abs(threshold.level));
  return threshold;
}

struct Spike {
  size_t first = 0;  // Index of the first high value.
  Threshold threshold;
  double peak = 0;
};

// Walks along the curve, one value after the other.
class Walk {
 public:
  Walk(const std::vector<CurvePoint>& points, const Curves::LossSpike& settings)
      : points_(points), settings_(settings) {}

  // Where the spikes that ended began, ascending.
  const std::vector<size_t>& ended() const { return ended_; }

  std::optional<Spike> Run(size_t from) {
    for (size_t i = from; i < points_.size(); ++i) {
      if (spike_) {
        During(i);
      } else {
        Before(i);
      }
    }
    return spike_;
  }

 private:
  void Remember(double value) {
    reference_.push_back(value);
    if (reference_.size() > settings_.reference_points()) reference_.pop_front();
    ++remembered_;
  }

  void Before(size_t i) {
    const double value = points_[i].value;
    if (reference_.size() < settings_.least_reference()) return Remember(value);
    if (remembered_ >= kRefresh) {
      threshold_ = ThresholdOf(reference_, settings_);
      remembered_ = 0;
    }
    while (!high_.empty() && high_.front() + settings_.of_values() <= i) high_.pop_front();
    if (value <= threshold_.level + threshold_.distance) return Remember(value);
    high_.push_back(i);
    if (high_.size() < settings_.values()) return;
    spike_ = Spike{.first = high_.front(), .threshold = threshold_, .peak = value};
    for (const size_t at : high_) spike_->peak = std::max(spike_->peak, points_[at].value);
    high_.clear();
  }

  void During(size_t i) {
    spike_->peak = std::max(spike_->peak, points_[i].value);
    std::vector<double> newest;
    for (size_t k = i + 1 - std::min<size_t>(i, settings_.values()); k <= i; ++k) {
      newest.push_back(points_[k].value);
    }
    const Threshold& threshold = spike_->threshold;
    if (Median(newest) < threshold.level + threshold.distance / 2) {
      ended_.push_back(spike_->first);
      spike_.reset();
    } else if (i - spike_->first >= settings_.give_up_points()) {
      spike_.reset();
      reference_.clear();
      remembered_ = 0;
    }
  }

  const std::vector<CurvePoint>& points_;
  const Curves::LossSpike& settings_;
  std::deque<double> reference_;
  std::deque<size_t> high_;  // Indices of the high ones among the newest `of_values` values.
  Threshold threshold_;
  size_t remembered_ = 0;  // Since threshold_ was found.
  std::optional<Spike> spike_;
  std::vector<size_t> ended_;
};

// Whether `first` is the next of several beginnings at about equal distances.
bool IsRegular(std::vector<size_t> beginnings, size_t first) {
  beginnings.push_back(first);
  if (beginnings.size() < kRegularSpikes + 1) return false;
  std::vector<double> gaps;
  for (size_t i = beginnings.size() - kRegularSpikes; i < beginnings.size(); ++i) {
    gaps.push_back(static_cast<double>(beginnings[i] - beginnings[i - 1]));
  }
  const double median = Median(gaps);
  return std::all_of(gaps.begin(), gaps.end(),
                     [&](double gap) { return gap > median * 2 / 3 && gap < median * 3 / 2; });
}

Finding OfSpike(const Curve& curve, const Spike& spike, const Curves::LossSpike& settings) {
  TACHO_CHECK(spike.first < curve.points.size());
  const CurvePoint& first = curve.points[spike.first];
  const size_t lasted = curve.points.size() - spike.first;
  const bool slow = lasted > settings.slow_points();
  Finding finding = Present(
      slow ? Severity::kWarning : Severity::kInfo, slow ? "LossSpikeNotRecovered" : "LossSpike",
      absl::StrCat(curve.metric, " jumped from about ", ValueText(spike.threshold.level), " to ",
                   ValueText(spike.peak), " at step ", first.step,
                   " and has not recovered by step ", curve.points.back().step));
  finding.since_ns = first.time_ns;
  finding.step = first.step;
  const double sigmas = spike.threshold.noise > 0
                            ? (spike.peak - spike.threshold.level) / spike.threshold.noise
                            : std::numeric_limits<double>::infinity();
  finding.figures = {{"level_before", spike.threshold.level, "1"},
                     {"noise", spike.threshold.noise, "1"},
                     {"threshold", spike.threshold.level + spike.threshold.distance, "1"},
                     {"peak", spike.peak, "1"},
                     {"newest", curve.points.back().value, "1"},
                     {"points", static_cast<double>(lasted), "1"}};
  finding.BlameMetric(curve.metric, first.step, sigmas);
  return finding;
}

}  // namespace

Finding DetectLossSpike(const JobWindow& window, const Curves::LossSpike& settings) {
  const Curve curve = JobCurve(window, Signal::kLoss);
  if (curve.points.size() <= settings.least_reference()) return NotJudged();
  const size_t from = curve.points.size() - std::min(curve.points.size(), kMostPoints);
  Walk walk(curve.points, settings);
  const auto spike = walk.Run(from);
  if (!spike || IsRegular(walk.ended(), spike->first)) return NotPresent();
  const size_t before = spike->first - std::min<size_t>(spike->first, settings.reference_points());
  const size_t until = std::min(spike->first + kRateLate, curve.points.size() - 1);
  if (LearningRateRose(window, curve.points[before].step, curve.points[until].step,
                       settings.rate_jump())) {
    return NotPresent();
  }
  return OfSpike(curve, *spike, settings);
}

}  // namespace tacho::server::conditions
