#include "client/ctl/text/curve.h"

#include <algorithm>

namespace tacho::ctl {
namespace {

// Room around a value that stands alone.
Extent Widened(double low, double high) {
  if (low > high) return {};
  // Halves, as Share() takes them: of the smallest numbers there are they may be equal.
  if (low / 2 < high / 2) return {low, high};
  const double room = low == 0 ? 1 : std::fabs(low) / 2;
  return {low - room, high + room};
}

}  // namespace

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
      // Where a band reaches below zero, its middle is the lowest that is sure to be above.
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
