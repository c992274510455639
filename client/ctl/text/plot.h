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
#include "client/ctl/text/plot_axis.h"

namespace tacho::ctl {

struct PlotOptions {
  size_t width = 80;   // No line is longer; raised to kNarrowestPlot.
  size_t height = 18;  // Rows of the grid.
  PlotAxis axis = PlotAxis::kStep;
  bool log_scale = false;  // Values of 0 and below are left out.
  bool unicode = true;
  bool color = false;
  absl::TimeZone zone;  // For an axis of time.
  std::string zone_name;
  std::string title;  // Made printable, and shortened to `width`.
};

inline constexpr size_t kNarrowestPlot = 30;
// More curves than there are marks cannot be told apart.
inline constexpr size_t kMostCurves = 8;

// Returns lines without line breaks. The middle of each curve is a line, the space between its
// extremes is shaded, places with NaN or infinite values are marked above the grid, and a legend
// follows. AnyDrawn() must be true for `curves`.
std::vector<std::string> DrawPlot(const std::vector<Curve>& curves, const PlotOptions& options);

}  // namespace tacho::ctl
