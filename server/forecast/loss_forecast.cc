// Fits over parts of a curve, tried on the curve itself.
#include "server/forecast/loss_forecast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"

namespace tacho::server::forecast {
namespace {

// Points at equal distances of log(step): the end of a curve has most of its values, and would
// decide alone otherwise.
constexpr size_t kBins = 160;
// Where the parts begin that are fitted, as shares of the newest step.
constexpr std::array<double, 6> kPartBegins = {0.01, 0.05, 0.15, 0.3, 0.5, 0.7};
// The last method says that the loss stays as it is. No fit is better where it has levelled off.
constexpr size_t kMethods = kPartBegins.size() + 1;
constexpr size_t kLeastBins = 6;  // Of a part.
// A forecast is about the mean of the values in this share of the steps before it.
constexpr double kMeanOver = 0.05;
// The forecast's error, in units of the estimate below, that kBandShare of recorded curves stay
// under. Measured on the half of the public curves that docs/forecast.md does not report.
constexpr double kBandFactor = 1.5;
constexpr double kBelief = 0.4;

using Points = absl::Span<const CurvePoint>;
using Predictions = std::array<std::optional<double>, kMethods>;

Points From(Points points, double step) {
  const auto at = std::lower_bound(points.begin(), points.end(), step,
                                   [](const CurvePoint& p, double s) { return p.step < s; });
  return points.subspan(static_cast<size_t>(at - points.begin()));
}

Points UpTo(Points points, double step) {
  const auto at = std::upper_bound(points.begin(), points.end(), step,
                                   [](double s, const CurvePoint& p) { return s < p.step; });
  return points.subspan(0, static_cast<size_t>(at - points.begin()));
}

std::optional<double> MeanOf(Points points) {
  double sum = 0, values = 0;
  for (const CurvePoint& p : points) {
    sum += p.value * p.values;
    values += p.values;
  }
  if (values == 0) return std::nullopt;
  return sum / values;
}

// Of what lies in the kMeanOver before `step`, or of the newest point there.
double MeanBefore(Points points, double step) {
  const Points before = UpTo(points, step);
  const auto mean = MeanOf(From(before, step * (1 - kMeanOver)));
  return mean.value_or(before.empty() ? 0 : before.back().value);
}

std::vector<CurvePoint> Binned(Points points) {
  std::vector<CurvePoint> bins;
  if (points.empty()) return bins;
  const double width = std::log(points.back().step / points.front().step) / kBins;
  size_t bin = kBins + 1;
  for (const CurvePoint& p : points) {
    const auto at =
        width > 0 ? static_cast<size_t>(std::log(p.step / points.front().step) / width) : size_t{0};
    if (at != bin) bins.push_back({0, 0, 0});
    bin = at;
    CurvePoint& sum = bins.back();
    sum.step += p.step * p.values;
    sum.value += p.value * p.values;
    sum.values += p.values;
  }
  for (CurvePoint& b : bins) {
    b.step /= b.values;
    b.value /= b.values;
  }
  return bins;
}

struct PowerLaw {
  double a = 0, b = 0, c = 1;  // y = a + b (s / unit)^-c
  double unit = 1;
  double squares = 0;

  double At(double step) const { return a + b * std::pow(step / unit, -c); }
};

// The best a and b for one c. `floor`: a is not below 0, for a loss that never was.
PowerLaw FitFor(Points bins, double c, double unit, bool floor) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const CurvePoint& p : bins) {
    const double x = std::pow(p.step / unit, -c);
    n += 1;
    sx += x;
    sy += p.value;
    sxx += x * x;
    sxy += x * p.value;
  }
  PowerLaw law = {.a = sy / n, .b = 0, .c = c, .unit = unit};
  const double determinant = n * sxx - sx * sx;
  if (determinant > 1e-12 * n * sxx) {
    law.b = (n * sxy - sx * sy) / determinant;
    law.a = (sy - law.b * sx) / n;
  }
  if (floor && law.a < 0) {
    law.a = 0;
    law.b = sxy / sxx;
  }
  if (law.b < 0) {
    law.b = 0;
    law.a = sy / n;
  }
  for (const CurvePoint& p : bins) {
    const double off = p.value - law.At(p.step);
    law.squares += off * off;
  }
  return law;
}

std::optional<PowerLaw> Fit(Points bins) {
  if (bins.size() < kLeastBins) return std::nullopt;
  const bool floor =
      std::all_of(bins.begin(), bins.end(), [](const CurvePoint& p) { return p.value >= 0; });
  std::optional<PowerLaw> best;
  for (double c = 0.05; c < 3; c *= 1.25) {
    const PowerLaw law = FitFor(bins, c, bins.back().step, floor);
    if (!best.has_value() || law.squares < best->squares) best = law;
  }
  return best;
}

// What each method says of `step`, from the points alone that it is given.
Predictions Predict(Points points, double step) {
  Predictions all;
  const double newest = points.back().step;
  for (size_t i = 0; i < kPartBegins.size(); ++i) {
    const std::vector<CurvePoint> bins = Binned(From(points, newest * kPartBegins[i]));
    if (const auto law = Fit(bins); law.has_value()) all[i] = law->At(step);
  }
  all.back() = MeanBefore(points, newest);
  return all;
}

// A forecast made in the past, of a step whose value is known.
struct Trial {
  Predictions predictions;
  double truth = 0;
  double weight = 1;
};

// As far ahead in factors of steps as the forecast that is wanted, or as far as the curve allows:
// then errors are scaled up.
std::vector<Trial> Trials(Points points, double ahead) {
  std::vector<Trial> trials;
  const double newest = points.back().step;
  const double first = points.front().step;
  for (const double back : {1.0, 0.9, 0.8, 0.65, 0.5, 0.35}) {
    const double target = newest * back;
    double factor = ahead;
    double cut = target / factor;
    const double least = std::max(first * 3, newest * 0.02);
    if (cut < least) {
      cut = least;
      if (target < cut * 1.2) continue;
      factor = target / cut;
    }
    const Points known = UpTo(points, cut);
    if (known.size() < kLeastForecastPoints / 2) continue;
    Trial trial;
    trial.predictions = Predict(known, target);
    trial.truth = MeanBefore(points, target);
    // Errors grow about as the logarithm of the distance.
    const double scale = std::log(ahead) / std::log(factor);
    trial.weight = back / (scale * scale);
    if (scale > 1.001) {
      for (auto& p : trial.predictions) {
        if (p.has_value()) p = trial.truth + (*p - trial.truth) * scale;
      }
    }
    trials.push_back(trial);
  }
  return trials;
}

// The mean square of how wrong a method was; large where it could not be tried.
double SquareError(const std::vector<Trial>& trials, size_t method, double unknown) {
  double sum = 0, weights = 0;
  for (const Trial& trial : trials) {
    const auto& said = trial.predictions[method];
    const double off = said.has_value() ? *said - trial.truth : unknown;
    sum += trial.weight * off * off;
    weights += trial.weight;
  }
  return weights > 0 ? sum / weights : unknown * unknown;
}

std::optional<double> Mixed(const Predictions& said, const std::array<double, kMethods>& weights) {
  double sum = 0, all = 0;
  for (size_t i = 0; i < kMethods; ++i) {
    if (!said[i].has_value()) continue;
    sum += weights[i] * *said[i];
    all += weights[i];
  }
  if (all <= 0) return std::nullopt;
  return sum / all;
}

// The noise of the mean over kMeanOver of the steps: what no method could know.
double NoiseOf(Points points) {
  const Points newest = From(points, points.back().step * 0.8);
  if (newest.size() < 4) return 0;
  double squares = 0;
  for (size_t i = 1; i < newest.size(); ++i) {
    const double off = newest[i].value - newest[i - 1].value;
    squares += off * off / 2;
  }
  const double variance = squares / static_cast<double>(newest.size() - 1);
  const double averaged = std::max(1.0, static_cast<double>(newest.size()) * kMeanOver / 0.2);
  return std::sqrt(variance / averaged);
}

absl::Status Check(Points points, double at_step) {
  if (points.size() < kLeastForecastPoints) {
    return absl::FailedPreconditionError(absl::StrCat("there are ", points.size(),
                                                      " values with a step, and a forecast needs ",
                                                      kLeastForecastPoints, ": wait for more"));
  }
  const double newest = points.back().step;
  if (at_step <= newest) {
    return absl::OutOfRangeError(
        absl::StrFormat("step %.0f is recorded already, the newest is %.0f: ask for a later one",
                        at_step - 1, newest - 1));
  }
  if (at_step > newest * kFarthestForecast) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "step %.0f is too far from the newest, %.0f: a forecast reaches %.0f times the newest step",
        at_step - 1, newest - 1, kFarthestForecast));
  }
  return absl::OkStatus();
}

}  // namespace

void CurvePoints::Add(int64_t step, double value) {
  if (!std::isfinite(value) || step < 0) return;
  open_.step += static_cast<double>(step) + 1;
  open_.value += value;
  if (++open_values_ < values_a_point_) return;
  Close();
  if (points_.size() < kMost) return;
  for (size_t i = 0; i < points_.size() / 2; ++i) {
    const CurvePoint &a = points_[2 * i], &b = points_[2 * i + 1];
    points_[i] = {(a.step + b.step) / 2, (a.value + b.value) / 2, a.values + b.values};
  }
  points_.resize(points_.size() / 2);
  values_a_point_ *= 2;
}

void CurvePoints::Close() {
  const auto n = static_cast<double>(open_values_);
  points_.push_back({open_.step / n, open_.value / n, n});
  open_ = {0, 0, 0};
  open_values_ = 0;
}

std::vector<CurvePoint> CurvePoints::Take() {
  if (open_values_ > 0) Close();
  return std::move(points_);
}

absl::StatusOr<LossForecast> ForecastLoss(const std::vector<CurvePoint>& points, double at_step) {
  if (absl::Status status = Check(points, at_step); !status.ok()) return status;
  const double newest = points.back().step;
  const Predictions said = Predict(points, at_step);
  const std::vector<Trial> trials = Trials(points, at_step / newest);
  const double now = MeanBefore(points, newest);
  const double noise = NoiseOf(points);
  // What a method counts that could not be tried: as if it had been wrong by all that the curve
  // has moved lately.
  const double moved = std::abs(MeanBefore(points, newest / 2) - now) + noise;

  std::array<double, kMethods> weights = {};
  for (size_t i = 0; i < kMethods; ++i) {
    const double error = SquareError(trials, i, moved) + noise * noise + 1e-18;
    weights[i] = 1 / (error * error);
  }
  LossForecast forecast;
  forecast.now = now;
  forecast.value = Mixed(said, weights).value_or(now);

  double squares = 0, tried = 0;
  for (const Trial& trial : trials) {
    const auto mixed = Mixed(trial.predictions, weights);
    if (!mixed.has_value()) continue;
    squares += trial.weight * (*mixed - trial.truth) * (*mixed - trial.truth);
    tried += trial.weight;
  }
  const double wrong = tried > 0 ? squares / tried : moved * moved;
  double spread = 0, all = 0;
  for (size_t i = 0; i < kMethods; ++i) {
    if (!said[i].has_value()) continue;
    spread += weights[i] * (*said[i] - forecast.value) * (*said[i] - forecast.value);
    all += weights[i];
  }
  if (all > 0) spread /= all;
  // A schedule that is about to change cannot be seen in the curve. The further the forecast is
  // from what is known, the more of it is belief.
  const double believed = kBelief * (forecast.value - now);
  const double half = kBandFactor * std::sqrt(wrong + spread + noise * noise + believed * believed);
  forecast.low = forecast.value - half;
  forecast.high = forecast.value + half;
  const bool positive =
      std::all_of(points.begin(), points.end(), [](const CurvePoint& p) { return p.value >= 0; });
  if (positive) forecast.low = std::max(forecast.low, 0.0);
  return forecast;
}

}  // namespace tacho::server::forecast
