// Curves as SVG, for a page that stands by itself.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/ctl/text/curve.h"
#include "client/ctl/text/plot_axis.h"

namespace tacho::ctl {

struct SvgOptions {
  double width = 640;
  double height = 220;
  PlotAxis axis = PlotAxis::kStep;
  absl::TimeZone zone;
  std::string zone_name;
  std::string title;  // For those who cannot see the picture.
};

// Text for HTML and XML: its special characters escaped, control characters replaced by '?', bytes
// that are not UTF-8 by U+FFFD.
std::string EscapeXml(absl::string_view text);

// An <svg> element. Curve i has the class "c<i>": "line c0", "band c0", "alarm"; axes are "axis"
// and "grid". Colours are the page's business. At least one place must have something to draw:
// AnyDrawn().
std::string SvgChart(const std::vector<Curve>& curves, const SvgOptions& options);

}  // namespace tacho::ctl
