// The axis along which metrics are shown.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/ctl/text/curve.h"
#include "client/ctl/text/ticks.h"

namespace tacho::ctl {

// Places are steps, ns since the Unix epoch, or ns since a run's beginning.
enum class PlotAxis { kStep, kTime, kElapsed };

struct AxisLabels {
  std::string name;         // "step", "time (UTC)", "min since the beginning"
  std::vector<Tick> ticks;  // Their values are places.
};

AxisLabels LabelAxis(PlotAxis axis, Extent extent, size_t at_most, absl::TimeZone zone,
                     const std::string& zone_name);

// Where `value` lies within the extent, 0 to 1 (outside of it, if it does). For a logarithm both
// must be above 0.
double Share(double value, Extent extent, bool log_scale);

}  // namespace tacho::ctl
