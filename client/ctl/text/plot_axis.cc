#include "client/ctl/text/plot_axis.h"

#include <cmath>

#include "absl/strings/str_cat.h"

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
  // Between whole steps there is none.
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

}  // namespace tacho::ctl
