// Chooses round numbers and times of day for the axes of a plot, as many as there is room for.
#include "client/ctl/text/plot_axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tacho::ctl {
namespace {

struct DurationUnit {
  const char* name;
  double ns;
};

DurationUnit UnitFor(double span_ns) {
  constexpr double kSecond = 1e9;
  if (span_ns <= 1e-3 * kSecond) return {"us", 1e3};
  if (span_ns <= 2 * kSecond) return {"ms", 1e6};
  if (span_ns <= 180 * kSecond) return {"s", kSecond};
  if (span_ns <= 3 * 3600 * kSecond) return {"min", 60 * kSecond};
  if (span_ns <= 4 * 86400 * kSecond) return {"h", 3600 * kSecond};
  return {"d", 86400 * kSecond};
}

// The smallest spacing of 1, 2 or 5 times a power of ten that gives at most `at_most` ticks.
double NiceSpacing(double span, size_t at_most) {
  const double least = span / static_cast<double>(std::max<size_t>(at_most, 2) - 1);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

// How the numbers of one axis are written.
struct AxisStyle {
  double unit = 1;
  const char* suffix = "";
  int decimals = 0;
  bool exponent = false;
};

AxisStyle StyleFor(double largest, double spacing) {
  constexpr double kMostDecimals = 6;
  AxisStyle style;
  if (largest >= 1e15 || (largest > 0 && largest < 1e-4)) {
    style.exponent = true;
    style.decimals = std::max(0, static_cast<int>(std::floor(std::log10(largest) + 1e-9)) -
                                     static_cast<int>(std::floor(std::log10(spacing) + 1e-9)));
    return style;
  }
  if (largest >= 1e4) {
    constexpr std::array<std::pair<double, const char*>, 4> kUnits = {
        {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
    for (const auto& [unit, suffix] : kUnits) {
      // A spacing far below the unit would need as many digits as the number itself.
      if (largest < unit || spacing < unit * 0.099) continue;
      style.unit = unit;
      style.suffix = suffix;
      break;
    }
  }
  const double decimals = -std::floor(std::log10(spacing / style.unit) + 1e-9);
  style.decimals = static_cast<int>(std::clamp(decimals, 0.0, kMostDecimals));
  return style;
}

std::string Label(double value, const AxisStyle& style) {
  if (value == 0) return "0";
  if (style.exponent) return absl::StrFormat("%.*e", style.decimals, value);
  return absl::StrFormat("%.*f%s", style.decimals, value / style.unit, style.suffix);
}

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kDaySeconds = 86'400;

// Seconds between time ticks, and milliseconds below one.
constexpr std::array<int64_t, 28> kTimeSpacingsMs = {
    1,         2,         5,          10,         20,         50,         100,
    200,       500,       1'000,      2'000,      5'000,      10'000,     15'000,
    30'000,    60'000,    120'000,    300'000,    600'000,    900'000,    1'800'000,
    3'600'000, 7'200'000, 10'800'000, 21'600'000, 43'200'000, 86'400'000, 172'800'000};

int64_t TimeSpacingNs(double span_ns, size_t at_most) {
  for (const int64_t ms : kTimeSpacingsMs) {
    if (span_ns / (static_cast<double>(ms) * 1e6) <=
        static_cast<double>(std::max<size_t>(at_most, 2) - 1)) {
      return ms * 1'000'000;
    }
  }
  const double days = span_ns / 1e9 / static_cast<double>(kDaySeconds);
  return static_cast<int64_t>(std::ceil(NiceSpacing(days, at_most))) * kDaySeconds * kSecondNs;
}

std::string TimeLabel(absl::Time time, int64_t spacing_ns, absl::TimeZone zone) {
  const absl::CivilSecond civil = absl::ToCivilSecond(time, zone);
  if (civil == absl::CivilSecond(absl::CivilDay(civil)) && spacing_ns >= 60 * kSecondNs) {
    return absl::FormatTime("%m-%d", time, zone);
  }
  if (spacing_ns >= 60 * kSecondNs) return absl::FormatTime("%H:%M", time, zone);
  if (spacing_ns >= kSecondNs) return absl::FormatTime("%H:%M:%S", time, zone);
  return absl::FormatTime("%H:%M:%E3S", time, zone);
}

// Room around a value that stands alone.
Extent Widened(double low, double high) {
  if (low > high) return {};
  // Compares halves, as Share() does: halves of the smallest doubles may be equal.
  if (low / 2 < high / 2) return {low, high};
  const double room = low == 0 ? 1 : std::fabs(low) / 2;
  return {low - room, high + room};
}

}  // namespace

AxisLabels LabelAxis(PlotAxis axis, Extent extent, size_t at_most, absl::TimeZone zone,
                     const std::string& zone_name) {
  if (axis == PlotAxis::kTime) {
    return {absl::StrCat("time (", zone_name, ")"),
            TimeTicks(extent.low, extent.high, at_most, zone)};
  }
  if (axis == PlotAxis::kElapsed) {
    const DurationUnit unit = UnitFor(extent.high - extent.low);
    AxisLabels labels{absl::StrCat(unit.name, " since the beginning"),
                      LinearTicks(extent.low / unit.ns, extent.high / unit.ns, at_most)};
    for (Tick& tick : labels.ticks) tick.value *= unit.ns;
    return labels;
  }
  // There are no places between whole steps.
  AxisLabels labels{"step", {}};
  for (Tick& tick : LinearTicks(extent.low, extent.high, at_most)) {
    if (tick.value == std::round(tick.value)) labels.ticks.push_back(std::move(tick));
  }
  return labels;
}

double Share(double value, Extent extent, bool log_scale) {
  if (log_scale) {
    return std::log(value / extent.low) / std::log(extent.high / extent.low);
  }
  // Halved first: the span of two huge values would overflow.
  return (value / 2 - extent.low / 2) / (extent.high / 2 - extent.low / 2);
}

std::vector<Tick> LinearTicks(double low, double high, size_t at_most) {
  constexpr size_t kEnough = 2;
  // The span of two huge values would overflow.
  const double span = std::min(high - low, std::numeric_limits<double>::max());
  std::vector<Tick> ticks;
  // Few multiples may all lie outside.
  for (size_t count = at_most; ticks.size() < kEnough && count <= at_most + 8; ++count) {
    const double spacing = NiceSpacing(span, count);
    const AxisStyle style = StyleFor(std::max(std::fabs(low), std::fabs(high)), spacing);
    ticks.clear();
    for (double at = std::ceil(low / spacing - 1e-9); at * spacing <= high + spacing * 1e-9; ++at) {
      ticks.push_back({at * spacing, Label(at * spacing, style)});
      if (ticks.size() > count + 2) break;
    }
  }
  return ticks;
}

std::vector<Tick> LogTicks(double low, double high, size_t at_most) {
  const int first = static_cast<int>(std::ceil(std::log10(low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
  const int powers = last - first + 1;
  if (powers < 2) return LinearTicks(low, high, at_most);
  const int stride = 1 + (powers - 1) / static_cast<int>(std::max<size_t>(at_most, 2));
  const bool between = static_cast<size_t>(powers) * 3 <= at_most;
  std::vector<Tick> ticks;
  for (int power = first - 1; power <= last; ++power) {
    if (stride > 1 && (power - first) % stride != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && !between) continue;
      const double value = factor * std::pow(10, power);
      if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
      const bool plain = value >= 1e-3 && value < 1e4;
      ticks.push_back(
          {value, plain ? absl::StrFormat("%g", value) : absl::StrFormat("%.0e", value)});
    }
  }
  return ticks;
}

std::vector<Tick> TimeTicks(double low, double high, size_t at_most, absl::TimeZone zone) {
  const int64_t spacing = TimeSpacingNs(high - low, at_most);
  const auto begin = static_cast<int64_t>(low);
  const auto end = static_cast<int64_t>(high);
  // Multiples count from midnight in the zone, so that they are round where the reader is.
  const absl::Time start = absl::FromUnixNanos(begin);
  const absl::Time midnight =
      absl::FromCivil(absl::CivilDay(absl::ToCivilSecond(start, zone)), zone);
  int64_t at = absl::ToUnixNanos(midnight);
  if (at < begin) at += (begin - at + spacing - 1) / spacing * spacing;
  std::vector<Tick> ticks;
  for (; at <= end && ticks.size() < 1000; at += spacing) {
    ticks.push_back({static_cast<double>(at), TimeLabel(absl::FromUnixNanos(at), spacing, zone)});
  }
  return ticks;
}

Extent ExtentOfX(const std::vector<Curve>& curves) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Curve& curve : curves) {
    if (curve.points.empty()) continue;
    low = std::min(low, curve.points.front().x);
    high = std::max(high, curve.points.back().x);
  }
  // Half a step, or as much as makes a difference among times.
  const double room = std::max(0.5, std::fabs(low) * 1e-9);
  if (low == high) return {low - room, high + room};
  return Widened(low, high);
}

Extent ExtentOfY(const std::vector<Curve>& curves, bool positive_only) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Curve& curve : curves) {
    for (const CurvePoint& point : curve.points) {
      if (!point.drawn() || (positive_only && point.high <= 0)) continue;
      high = std::max(high, point.high);
      // If a band reaches below zero, its middle is its lowest value that may be above.
      const double bottom = positive_only && point.low <= 0 ? point.middle : point.low;
      if (!positive_only || bottom > 0) low = std::min(low, bottom);
    }
  }
  if (positive_only && low > high) low = high;
  return Widened(low, high);
}

bool AnyDrawn(const std::vector<Curve>& curves, bool positive_only) {
  for (const Curve& curve : curves) {
    for (const CurvePoint& point : curve.points) {
      if (point.drawn() && (!positive_only || point.high > 0)) return true;
    }
  }
  return false;
}

}  // namespace tacho::ctl
