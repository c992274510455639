#include "tests/conditions/planted.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "proto/base/quantile.h"
#include "server/conditions/measures/robust.h"

namespace tacho::conditions {
namespace {

using server::conditions::Point;
using server::conditions::Signal;
using server::conditions::Track;

constexpr size_t kLeastPoints = 200;
constexpr size_t kLeastEvaluations = 16;

Signal SignalOf(Plant plant) {
  switch (plant) {
    case Plant::kExplode:
    case Plant::kVanish:
      return Signal::kGradNorm;
    case Plant::kOverfit:
      return Signal::kEvalLoss;
    default:
      return Signal::kLoss;
  }
}

Track* FindCurve(RecordedJob* job, Signal signal) {
  for (server::conditions::TaskWindow& task : job->tasks) {
    const auto found = task.tracks.find(signal);
    if (found == task.tracks.end()) continue;
    for (Track& track : found->second) {
      if (!track.empty()) return &track;
    }
  }
  return nullptr;
}

double Uniform(double low, double high, std::mt19937_64* random) {
  return std::uniform_real_distribution<double>(low, high)(*random);
}

double LevelBefore(const std::vector<Point>& points, size_t at, size_t count) {
  std::vector<double> values;
  for (size_t i = at - std::min(at, count); i < at; ++i) values.push_back(points[i].value);
  return Median(values);
}

double Change(std::vector<Point>& points, size_t at, Plant plant, std::mt19937_64* random) {
  const double level = std::abs(LevelBefore(points, at, 20));
  const double growth = plant == Plant::kRunAway   ? Uniform(0.02, 0.10, random)
                        : plant == Plant::kExplode ? Uniform(0.10, 0.50, random)
                        : plant == Plant::kVanish  ? -Uniform(0.20, 0.60, random)
                                                   : Uniform(0.02, 0.08, random);
  const double height = Uniform(0.2, 2.0, random);
  const auto lasts = static_cast<size_t>(Uniform(5, 30, random));
  const double swing = Uniform(0.10, 0.40, random);
  const double period = std::floor(Uniform(2, 17, random));
  const size_t past = std::min<size_t>(at, 50);
  const double frozen = LevelBefore(points, at, past);
  std::vector<double> noise;
  for (size_t i = at - past; i < at; ++i) {
    // Off the course of its neighbours.
    noise.push_back(points[i].value - LevelBefore(points, i + 1, 10));
  }
  for (size_t i = at; i < points.size(); ++i) {
    double& value = points[i].value;
    const auto since = static_cast<double>(i - at + 1);
    switch (plant) {
      case Plant::kNan:
        value = std::numeric_limits<double>::quiet_NaN();
        break;
      case Plant::kRunAway:
        value += level * (std::pow(1 + growth, std::min(since, 400.0)) - 1);
        break;
      case Plant::kSpike:
        value += level * height * std::exp(-std::max(0.0, since - static_cast<double>(lasts)) / 10);
        break;
      case Plant::kPlateau:
        value = frozen + noise[std::uniform_int_distribution<size_t>(0, past - 1)(*random)];
        break;
      case Plant::kOscillate:
        value *= 1 + swing * std::cos(2 * M_PI * since / period);
        break;
      case Plant::kExplode:
      case Plant::kVanish:
        value *= std::pow(1 + growth, std::min(since, 60.0));
        break;
      case Plant::kOverfit:
        value = std::max(value, level) + level * growth * since;
        break;
    }
  }
  const double height_of = plant == Plant::kSpike       ? level * height
                           : plant == Plant::kOscillate ? level * swing
                                                        : 0;
  const double deviation = server::conditions::UpperNoise(noise);
  return deviation > 0 ? height_of / deviation : 0;
}

}  // namespace

const char* PlantName(Plant plant) {
  switch (plant) {
    case Plant::kNan:
      return "NaN";
    case Plant::kRunAway:
      return "loss runs away";
    case Plant::kSpike:
      return "spike";
    case Plant::kPlateau:
      return "loss stays";
    case Plant::kOscillate:
      return "swing";
    case Plant::kExplode:
      return "norm grows";
    case Plant::kVanish:
      return "norm falls";
    case Plant::kOverfit:
      return "eval loss rises";
  }
  return "";
}

const char* ConditionOf(Plant plant) {
  switch (plant) {
    case Plant::kNan:
    case Plant::kRunAway:
      return "Diverged";
    case Plant::kSpike:
      return "LossSpike";
    case Plant::kPlateau:
      return "Plateau";
    case Plant::kOscillate:
      return "Oscillating";
    case Plant::kExplode:
      return "GradientExploding";
    case Plant::kVanish:
      return "GradientVanished";
    case Plant::kOverfit:
      return "Overfitting";
  }
  return "";
}

size_t LimitOf(Plant plant) {
  switch (plant) {
    case Plant::kNan:
      return 3;
    case Plant::kRunAway:
      return 200;
    case Plant::kSpike:
      return 30;
    case Plant::kPlateau:
      return 0;
    case Plant::kOscillate:
      return 192;
    case Plant::kExplode:
    case Plant::kVanish:
      return 60;
    case Plant::kOverfit:
      return 0;
  }
  return 0;
}

std::optional<PlantedJob> PlantInto(const RecordedJob& job, Plant plant, std::mt19937_64* random) {
  PlantedJob planted{.job = job};
  Track* track = FindCurve(&planted.job, SignalOf(plant));
  const size_t least = plant == Plant::kOverfit ? kLeastEvaluations : kLeastPoints;
  if (track == nullptr || track->points.size() < least) return std::nullopt;
  if (plant == Plant::kOverfit && FindCurve(&planted.job, Signal::kLoss) == nullptr) {
    return std::nullopt;
  }
  // Not every fault has a meaning where a loss changes its sign or is 0 all the time.
  const size_t n = track->points.size();
  const auto at = static_cast<size_t>(Uniform(0.35, 0.7, random) * static_cast<double>(n));
  if (!(std::abs(LevelBefore(track->points, at, 20)) > 0)) return std::nullopt;
  planted.noises = Change(track->points, at, plant, random);
  planted.at_ns = track->points[at].time_ns;
  planted.at_step = track->points[at].step;
  for (size_t i = at; i < n; ++i) {
    planted.times_ns.push_back(track->points[i].time_ns);
    planted.steps.push_back(track->points[i].step);
  }
  return planted;
}

}  // namespace tacho::conditions
