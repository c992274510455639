// Throttled: chips run below their clock because they are too hot or draw too much power.
//
// Definition. A value of a chip's clock is low if it is below min_clock of the chip's highest clock
// (the recorded maximum; else the highest value in the window). It has a cause if one of these
// explains it at that time:
//   - throttle reasons (bits of NVML's clocksEventReasons): HW thermal 0x40, SW thermal 0x20, HW
//     power brake 0x80, HW slowdown 0x8, SW power cap 0x4. Idle, application clocks, sync boost
//     and display clocks are no causes;
//   - libtpu's throttle score, 0..10, above 0;
//   - a temperature of at least hot_celsius; power of at least `capped` of its limit.
// Only values at which the chip works count: a duty cycle of at least min_busy, where it is known.
// A chip is throttled if at least half of its values of the newest `span`, and the newest value,
// are low with a cause. Without a clock, HW thermal, HW power brake, HW slowdown or a score of at
// least 3 is enough. A low clock without a cause is not this condition. Bits: NVIDIA, nvml.h. The
// levels are ours.
//
// The cost is the median step time of the newest span less that of the steps before the chip became
// slow, where both are recorded.
//
// Score: the clock as a share of the highest; lower is worse. Critical if steps take a fifth
// longer, or the clock is below half.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/window/signal_names.h"

namespace tacho::server::conditions {
namespace {

enum class Cause : uint8_t {
  kNone,
  kThermal,
  kPowerBrake,
  kHardwareSlowdown,
  kPowerCap,
  kThrottleScore,
  kHot,
  kNearPowerLimit,
};

absl::string_view ReasonOf(Cause cause) {
  switch (cause) {
    case Cause::kThermal:
      return "Thermal";
    case Cause::kPowerBrake:
      return "PowerBrake";
    case Cause::kHardwareSlowdown:
      return "HardwareSlowdown";
    case Cause::kPowerCap:
      return "PowerCap";
    case Cause::kThrottleScore:
      return "ThrottleScore";
    case Cause::kHot:
      return "Hot";
    case Cause::kNearPowerLimit:
      return "NearPowerLimit";
    case Cause::kNone:
      break;
  }
  return "";
}

constexpr double kScoreAlone = 3;  // Without a clock.
constexpr double kCriticalClock = 0.5;
constexpr double kCriticalCost = 0.2;

struct Reading {
  int64_t time_ns = 0;
  std::optional<double> clock;  // A share of the highest.
  Cause cause = Cause::kNone;
  bool certain = false;  // The cause alone is enough, without a clock.
  bool at_work = true;
};

struct Throttle {
  const ChipWindow* chip = nullptr;
  std::string metric;
  Cause cause = Cause::kNone;
  double clock = 1;  // The newest, as a share of the highest; 1: unknown.
  double hertz = 0;
  std::optional<double> celsius;
  int64_t since_ns = 0;
};

// The newest value at a time, if it is no older than the span.
class Lookup {
 public:
  Lookup(const Tracks& tracks, Signal signal, int64_t max_age_ns)
      : track_(FindTrack(tracks, signal)), max_age_ns_(max_age_ns) {}

  const Track* track() const { return track_; }
  // Times must not go back from one call to the next.
  std::optional<double> At(int64_t time_ns) {
    TACHO_CHECK(time_ns >= last_ns_);
    last_ns_ = time_ns;
    if (track_ == nullptr) return std::nullopt;
    while (next_ < track_->points.size() && track_->points[next_].time_ns <= time_ns) ++next_;
    if (next_ == 0) return std::nullopt;
    const Point& point = track_->points[next_ - 1];
    if (time_ns - point.time_ns > max_age_ns_ || !std::isfinite(point.value)) return std::nullopt;
    return point.value;
  }

 private:
  const Track* track_;
  const int64_t max_age_ns_;
  size_t next_ = 0;
  int64_t last_ns_ = INT64_MIN;
};

Cause OfBits(double value, bool* certain) {
  if (value < 0 || value >= 9e15) return Cause::kNone;
  const auto bits = static_cast<uint64_t>(value);
  *certain = (bits & (0x40 | 0x80 | 0x8)) != 0;
  if ((bits & (0x40 | 0x20)) != 0) return Cause::kThermal;
  if ((bits & 0x80) != 0) return Cause::kPowerBrake;
  if ((bits & 0x8) != 0) return Cause::kHardwareSlowdown;
  if ((bits & 0x4) != 0) return Cause::kPowerCap;
  return Cause::kNone;
}

// The readings of one chip, one for each value of its clock, or else of its throttle reasons.
class Readings {
 public:
  Readings(const ChipWindow& chip, const Hardware::Throttled& settings)
      : settings_(settings),
        max_age_ns_(settings.span()),
        clock_(chip.tracks, Signal::kChipClock, max_age_ns_),
        clock_max_(Newest(chip.tracks, Signal::kChipClockMax)),
        busy_(chip.tracks, Signal::kChipBusy, max_age_ns_),
        reasons_(chip.tracks, Signal::kThrottleReasons, max_age_ns_),
        celsius_(chip.tracks, Signal::kChipTemperature, max_age_ns_),
        watts_(chip.tracks, Signal::kChipPower, max_age_ns_),
        watt_limit_(chip.tracks, Signal::kChipPowerLimit, max_age_ns_) {
    if (reasons_.track() != nullptr) {
      is_score_ = absl::StrContains(NormalisedName(reasons_.track()->metric), "throttle_score");
    }
    if (clock_.track() == nullptr || clock_max_.value_or(0) > 0) return;
    for (const Point& point : clock_.track()->points) {
      if (std::isfinite(point.value)) clock_max_ = std::max(clock_max_.value_or(0), point.value);
    }
  }

  // The track whose values are judged; nullptr: neither is recorded.
  const Track* track() const {
    return clock_.track() != nullptr ? clock_.track() : reasons_.track();
  }
  double clock_max() const { return clock_max_.value_or(0); }

  Reading At(int64_t time_ns) {
    Reading reading = {.time_ns = time_ns};
    const auto clock = clock_.At(time_ns);
    if (clock.has_value() && clock_max() > 0) reading.clock = *clock / clock_max();
    const auto busy = busy_.At(time_ns);
    reading.at_work = !busy.has_value() || *busy >= settings_.min_busy();
    reading.cause = CauseAt(time_ns, &reading.certain);
    return reading;
  }

  bool IsThrottled(const Reading& reading) const {
    if (reading.cause == Cause::kNone) return false;
    return reading.clock.has_value() ? *reading.clock < settings_.min_clock() : reading.certain;
  }

 private:
  Cause CauseAt(int64_t time_ns, bool* certain) {
    const auto reasons = reasons_.At(time_ns);
    const auto celsius = celsius_.At(time_ns);
    const auto watts = watts_.At(time_ns);
    const auto limit = watt_limit_.At(time_ns);
    Cause cause = Cause::kNone;
    if (reasons.has_value() && is_score_ && *reasons > 0) {
      *certain = *reasons >= kScoreAlone;
      cause = Cause::kThrottleScore;
    } else if (reasons.has_value() && !is_score_) {
      cause = OfBits(*reasons, certain);
    }
    if (cause != Cause::kNone) return cause;
    if (celsius.has_value() && *celsius >= settings_.hot_celsius()) return Cause::kHot;
    if (watts.has_value() && limit.has_value() && *limit > 0 &&
        *watts >= settings_.capped() * *limit)
      return Cause::kNearPowerLimit;
    return Cause::kNone;
  }

  const Hardware::Throttled& settings_;
  const int64_t max_age_ns_;
  Lookup clock_;
  std::optional<double> clock_max_;
  Lookup busy_;
  Lookup reasons_;
  Lookup celsius_;
  Lookup watts_;
  Lookup watt_limit_;
  bool is_score_ = false;
};

std::optional<Throttle> ThrottleOf(const ChipWindow& chip, int64_t since_ns,
                                   const Hardware::Throttled& settings, bool* judged) {
  Readings readings(chip, settings);
  const Track* track = readings.track();
  if (track == nullptr || track->points.back().time_ns < since_ns) return std::nullopt;
  Throttle throttle = {.chip = &chip, .metric = track->metric};
  size_t values = 0;
  size_t slow = 0;
  bool now = false;
  std::optional<int64_t> since;  // Start of the newest run of slow values.
  for (const Point& point : track->points) {
    const Reading reading = readings.At(point.time_ns);
    // An idle chip, as in a checkpoint or an evaluation, does not end the run.
    if (!reading.at_work) continue;
    now = readings.IsThrottled(reading);
    if (point.time_ns >= since_ns) {
      ++values;
      slow += now ? 1 : 0;
    }
    if (!now) {
      since.reset();
      continue;
    }
    if (!since.has_value()) since = point.time_ns;
    throttle.cause = reading.cause;
    throttle.clock = reading.clock.value_or(1);
  }
  *judged = true;
  if (!now || slow * 2 < values) return std::nullopt;
  throttle.hertz = throttle.clock * readings.clock_max();
  throttle.celsius = Newest(chip.tracks, Signal::kChipTemperature);
  throttle.since_ns = *since;
  return throttle;
}

std::optional<double> MedianBetween(const JobWindow& window, int64_t from_ns, int64_t until_ns) {
  for (const TaskWindow& task : window.tasks) {
    const Track* track = FindTrack(task.tracks, Signal::kStepTime);
    if (track == nullptr) continue;
    std::vector<double> values;
    for (const Point& point : track->points) {
      if (point.time_ns < from_ns || point.time_ns >= until_ns || !std::isfinite(point.value))
        continue;
      values.push_back(point.value);
    }
    if (values.empty()) return std::nullopt;
    return UpperMedian(std::move(values));
  }
  return std::nullopt;
}

std::string MessageOf(const Throttle& worst, size_t throttles, std::optional<double> cost) {
  std::string text = absl::StrFormat("Chip %s of %s is throttled (%s)", worst.chip->chip,
                                     worst.chip->host, ReasonOf(worst.cause));
  if (worst.hertz > 0) {
    absl::StrAppendFormat(&text, ": its clock is %.0f MHz, %.0f %% of the highest",
                          worst.hertz / 1e6, worst.clock * 100);
  }
  if (worst.celsius.has_value()) absl::StrAppendFormat(&text, ", at %.0f °C", *worst.celsius);
  if (cost.has_value()) absl::StrAppendFormat(&text, "; steps take %.3g s longer", *cost);
  if (throttles > 1) absl::StrAppendFormat(&text, "; %d more chips are throttled", throttles - 1);
  return text;
}

}  // namespace

Finding DetectThrottled(const JobWindow& window, const Hardware::Throttled& settings) {
  const int64_t since = window.now_ns - settings.span();
  std::vector<Throttle> found;
  bool judged = false;
  for (const ChipWindow& chip : window.chips) {
    auto throttle = ThrottleOf(chip, since, settings, &judged);
    if (throttle.has_value()) found.push_back(*std::move(throttle));
  }
  if (!judged) return NotJudged();
  if (found.empty()) return NotPresent();
  std::stable_sort(found.begin(), found.end(),
                   [](const Throttle& a, const Throttle& b) { return a.clock < b.clock; });
  const Throttle& worst = found.front();
  const auto before = MedianBetween(window, INT64_MIN, worst.since_ns);
  const auto after = MedianBetween(window, std::max(since, worst.since_ns), INT64_MAX);
  std::optional<double> cost;
  if (before.has_value() && after.has_value()) cost = *after - *before;
  const bool costly = cost.has_value() && *cost > kCriticalCost * *before;
  Finding finding =
      Present(costly || worst.clock < kCriticalClock ? Severity::kCritical : Severity::kWarning,
              ReasonOf(worst.cause), MessageOf(worst, found.size(), cost));
  finding.since_ns = worst.since_ns;
  finding.figures = {{"clock_ratio", worst.clock, "1"}, {"threshold", settings.min_clock(), "1"}};
  if (worst.celsius.has_value()) finding.AddFigure("temperature", *worst.celsius, "Cel");
  if (cost.has_value()) finding.AddFigure("step_time_cost", *cost, "s");
  for (const Throttle& throttle : found) {
    finding.BlameChip(throttle.chip->host, throttle.chip->chip, throttle.clock, throttle.metric);
  }
  return finding;
}

}  // namespace tacho::server::conditions
