// Curves of metrics, ready to draw: places along an axis with the extremes found there; and the
// axes, with round numbers, few enough to read.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tacho::ctl {

inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

struct CurvePoint {
  double x = 0;  // Step, ns since the Unix epoch, or ns since the beginning.
  // Over the finite samples at this place; NaN if there are none.
  double low = kNotANumber;
  double middle = kNotANumber;
  double high = kNotANumber;
  uint64_t count = 0;
  uint64_t non_finite = 0;

  bool drawn() const { return std::isfinite(middle); }
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // By x, ascending.
  // The last value of the samples; nullopt: that of the last point stands for it.
  std::optional<double> last = std::nullopt;
};

// The range of an axis. Never empty: low < high.
struct Extent {
  double low = 0;
  double high = 1;
};

// The range of all places, whether or not they have a finite value.
Extent ExtentOfX(const std::vector<Curve>& curves);
// The range of all bands; `positive_only` leaves out what a logarithm cannot show.
Extent ExtentOfY(const std::vector<Curve>& curves, bool positive_only);

// Whether a plot of the curves would show anything.
bool AnyDrawn(const std::vector<Curve>& curves, bool positive_only);

struct Tick {
  double value = 0;
  std::string label;
};

// All tick functions take finite numbers with low < high, and return ticks in ascending order
// within [low, high].

// Multiples of 1, 2 or 5 times a power of ten, at most `at_most` (2 or more) of them, or a few more
// where fewer than two would be left. All labels have the same number of decimals and the same
// suffix: k, M, G or T for thousands, or an exponent where numbers are very small or very large.
std::vector<Tick> LinearTicks(double low, double high, size_t at_most);

// Powers of ten, with 2 and 5 times them between where there is room; low > 0. If less than one
// power of ten lies between, as LinearTicks.
std::vector<Tick> LogTicks(double low, double high, size_t at_most);

// Round times of day in `zone`: "12:30", "12:30:15", "12:30:15.250"; "01-31" where days change.
// Values are ns since the Unix epoch.
std::vector<Tick> TimeTicks(double low, double high, size_t at_most, absl::TimeZone zone);

// Places are steps, ns since the Unix epoch, or ns since a run's beginning.
enum class PlotAxis { kStep, kTime, kElapsed };

struct AxisLabels {
  std::string name;         // "step", "time (UTC)", "min since the beginning"
  std::vector<Tick> ticks;  // Their values are places.
};

AxisLabels LabelAxis(PlotAxis axis, Extent extent, size_t at_most, absl::TimeZone zone,
                     const std::string& zone_name);

// Where `value` lies within the extent: 0 to 1, or beyond for a value outside. With `log_scale`,
// value and extent must be above 0.
double Share(double value, Extent extent, bool log_scale);

}  // namespace tacho::ctl
