#include "server/forecast/end_forecast.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tacho::server::forecast {
namespace {

constexpr size_t kStretches = 24;
// A deviation's factor for kBandShare (0.8) of what lies around the mean of few samples: Student's
// t with about ten degrees of freedom.
constexpr double kDeviations = 1.4;
// Speeds drift: other data, other neighbours. Never believe a rate to better than this.
constexpr double kLeastDrift = 0.01;

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// The time at which `step` was reached, between the points on both sides.
double TimeOf(const std::vector<ProgressPoint>& points, double step) {
  const auto after = std::lower_bound(
      points.begin(), points.end(), step,
      [](const ProgressPoint& p, double s) { return static_cast<double>(p.step) < s; });
  if (after == points.begin()) return Seconds(after->time_ns);
  if (after == points.end()) return Seconds(points.back().time_ns);
  const ProgressPoint& a = *(after - 1);
  const double share =
      (step - static_cast<double>(a.step)) / static_cast<double>(after->step - a.step);
  return Seconds(a.time_ns) + share * (Seconds(after->time_ns) - Seconds(a.time_ns));
}

double MeanOf(const std::vector<double>& values, size_t from) {
  double sum = 0;
  for (size_t i = from; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - from);
}

int64_t TimeAfter(int64_t base_ns, double seconds) {
  const double at = static_cast<double>(base_ns) + seconds * 1e9;
  // A double next to the largest int64 is above it.
  if (!(at < 9.2e18)) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(at);
}

// A job that pauses for longer than it ever did lately begins its next step now at the earliest.
int64_t BaseOf(const std::vector<ProgressPoint>& points, int64_t now_ns) {
  int64_t longest = 0;
  for (size_t i = points.size() / 2; i + 1 < points.size(); ++i) {
    longest = std::max(longest, points[i + 1].time_ns - points[i].time_ns);
  }
  return std::max(points.back().time_ns, now_ns - longest);
}

}  // namespace

void Progress::Add(int64_t time_ns, int64_t step) {
  if (any_ && step <= newest_.step) return;
  newest_ = {time_ns, step};
  if (any_ && ++since_kept_ < stride_) return;
  any_ = true;
  since_kept_ = 0;
  points_.push_back(newest_);
  if (points_.size() < kMost) return;
  for (size_t i = 0; i < points_.size() / 2; ++i) points_[i] = points_[2 * i];
  points_.resize(points_.size() / 2);
  stride_ *= 2;
  since_kept_ = stride_ / 2;
}

std::vector<ProgressPoint> Progress::Take() {
  if (any_ && points_.back().step < newest_.step) points_.push_back(newest_);
  return std::move(points_);
}

absl::StatusOr<EndForecast> ForecastEnd(const std::vector<ProgressPoint>& points, int64_t last_step,
                                        int64_t now_ns) {
  if (points.size() < kLeastProgressPoints) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job has got further ", points.size(), " times, and a forecast needs ",
                     kLeastProgressPoints, ": wait for more steps"));
  }
  if (last_step <= points.back().step) {
    return absl::OutOfRangeError(absl::StrCat("step ", last_step, " is recorded already"));
  }
  const double first = static_cast<double>(points.front().step);
  const double done = static_cast<double>(points.back().step) - first;
  const size_t stretches = std::min(kStretches, points.size() - 1);
  const double steps = done / static_cast<double>(stretches);
  std::vector<double> took;
  for (size_t i = 0; i < stretches; ++i) {
    const double from = first + steps * static_cast<double>(i);
    took.push_back(TimeOf(points, from + steps) - TimeOf(points, from));
  }
  // The newer half knows better how fast the job is now; all of it, how much that changes.
  const double all = MeanOf(took, 0);
  const double newer = MeanOf(took, stretches / 2);
  double squares = 0;
  for (const double t : took) squares += (t - all) * (t - all);
  const double deviation = std::sqrt(squares / static_cast<double>(stretches - 1));
  const double left =
      (static_cast<double>(last_step) - static_cast<double>(points.back().step)) / steps;
  // The mean of what is left differs from that of the newer half by what either of them has by
  // chance, and by drift.
  const double chance =
      deviation * std::sqrt(1 / std::max(left, 1.0) + 2.0 / static_cast<double>(stretches));
  const double drift = std::max(std::abs(newer - all), kLeastDrift * newer);
  const double half = kDeviations * left * std::sqrt(chance * chance + drift * drift);
  const double likely = left * newer;
  const int64_t base = BaseOf(points, now_ns);
  if (TimeAfter(base, likely) == std::numeric_limits<int64_t>::max()) {
    return absl::FailedPreconditionError(
        absl::StrCat("at this pace step ", last_step, " comes after the year 2262"));
  }
  return EndForecast{
      .likely_ns = TimeAfter(base, likely),
      // Nothing is faster than the fastest stretch.
      .earliest_ns = TimeAfter(
          base, std::max(likely - half, left * *std::min_element(took.begin(), took.end()))),
      .latest_ns = TimeAfter(base, likely + half)};
}

}  // namespace tacho::server::forecast
