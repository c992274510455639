// Curves as SVG, for a page that needs no other file.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/ctl/text/plot_axis.h"

namespace tacho::ctl {

struct SvgOptions {
  double width = 640;
  double height = 220;
  PlotAxis axis = PlotAxis::kStep;
  absl::TimeZone zone;
  std::string zone_name;
  std::string title;  // For screen readers.
};

// Escapes text for HTML and XML. Control characters become '?', bytes that are not UTF-8 U+FFFD.
std::string EscapeXml(absl::string_view text);

// An <svg> element. Curve i has the class "c<i>": "line c0", "band c0", "alarm"; axes are "axis"
// and "grid". The page sets the colours. AnyDrawn() must be true for `curves`.
std::string SvgChart(const std::vector<Curve>& curves, const SvgOptions& options);

}  // namespace tacho::ctl
