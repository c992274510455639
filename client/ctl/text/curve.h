// A metric's course, ready to be drawn: places along an axis with the extremes found there.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tacho::ctl {

inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

struct CurvePoint {
  double x = 0;  // Step, ns since the Unix epoch, or ns since the beginning.
  // Over the finite samples there; NaN if there is none.
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
};

// What the axes of a plot reach from and to. Never empty: low < high.
struct Extent {
  double low = 0;
  double high = 1;
};

// Of the places of all curves, whether or not they have a finite value.
Extent ExtentOfX(const std::vector<Curve>& curves);
// Of their bands; with `positive_only` without what a logarithm cannot show.
Extent ExtentOfY(const std::vector<Curve>& curves, bool positive_only);

// Whether a plot of them would show anything.
bool AnyDrawn(const std::vector<Curve>& curves, bool positive_only);

}  // namespace tacho::ctl
