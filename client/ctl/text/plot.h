// A plot made of characters.
//
//   loss [nats]
//   2.5 ┤⢆
//       │⠈⢢⡀
//   2.0 ┤  ⠑⠢⠤⣀⡀
//       └┬──────┬──────┬
//        0     500  1,000  step
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/ctl/text/curve.h"
#include "client/ctl/text/plot_axis.h"

namespace tacho::ctl {

struct PlotOptions {
  size_t width = 80;   // Columns that no line exceeds; at least kNarrowestPlot are taken.
  size_t height = 18;  // Rows of the grid itself.
  PlotAxis axis = PlotAxis::kStep;
  bool log_scale = false;  // Values of 0 and below are left out.
  bool unicode = true;
  bool color = false;
  absl::TimeZone zone;  // Of an axis of time.
  std::string zone_name;
  std::string title;  // Made printable, and shortened to `width`.
};

inline constexpr size_t kNarrowestPlot = 30;
// More curves than there are marks cannot be told apart.
inline constexpr size_t kMostCurves = 8;

// Lines without line breaks. The middle of each curve is a line, the space between its extremes is
// shaded; places with values that are NaN or infinite are marked above the grid. A legend follows.
// At least one place of `curves` must have something to draw: AnyDrawn().
std::vector<std::string> DrawPlot(const std::vector<Curve>& curves, const PlotOptions& options);

}  // namespace tacho::ctl
