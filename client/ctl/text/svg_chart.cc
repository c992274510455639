// Draws curves as SVG: bands first, then lines, then marks where values are not finite, so that
// nothing hides a mark.
#include "client/ctl/text/svg_chart.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/text/text.h"
#include "proto/base/json_text.h"

namespace tacho::ctl {
namespace {

constexpr double kLeft = 64;
constexpr double kRight = 12;
constexpr double kTop = 14;
constexpr double kBottom = 34;

class SvgWriter {
 public:
  SvgWriter(const std::vector<Curve>& curves, const SvgOptions& options)
      : curves_(curves), options_(options), x_(ExtentOfX(curves)), y_(ExtentOfY(curves, false)) {}

  std::string Write() {
    absl::StrAppendFormat(&svg_, "<svg viewBox=\"0 0 %g %g\" role=\"img\">\n<title>%s</title>\n",
                          options_.width, options_.height, EscapeXml(options_.title));
    AddYAxis();
    AddXAxis();
    for (size_t i = 0; i < curves_.size(); ++i) AddBands(i);
    for (size_t i = 0; i < curves_.size(); ++i) AddLines(i);
    for (const Curve& curve : curves_) AddAlarms(curve);
    return svg_ + "</svg>\n";
  }

 private:
  double X(double x) const {
    return kLeft + Share(x, x_, false) * (options_.width - kLeft - kRight);
  }
  double Y(double y) const {
    return kTop + (1 - Share(y, y_, false)) * (options_.height - kTop - kBottom);
  }

  void AddYAxis() {
    constexpr size_t kTicks = 5;
    for (const Tick& tick : LinearTicks(y_.low, y_.high, kTicks)) {
      absl::StrAppendFormat(&svg_,
                            "<line class=\"grid\" x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\"/>"
                            "<text class=\"y\" x=\"%g\" y=\"%.1f\">%s</text>\n",
                            kLeft, Y(tick.value), options_.width - kRight, Y(tick.value), kLeft - 6,
                            Y(tick.value) + 4, EscapeXml(tick.label));
    }
  }

  void AddXAxis() {
    constexpr size_t kTicks = 7;
    const double bottom = options_.height - kBottom;
    const AxisLabels labels =
        LabelAxis(options_.axis, x_, kTicks, options_.zone, options_.zone_name);
    absl::StrAppendFormat(&svg_, "<line class=\"axis\" x1=\"%g\" y1=\"%g\" x2=\"%g\" y2=\"%g\"/>\n",
                          kLeft, bottom, options_.width - kRight, bottom);
    for (const Tick& tick : labels.ticks) {
      absl::StrAppendFormat(&svg_, "<text class=\"x\" x=\"%.1f\" y=\"%g\">%s</text>\n",
                            X(tick.value), bottom + 15, EscapeXml(tick.label));
    }
    absl::StrAppendFormat(&svg_, "<text class=\"name\" x=\"%g\" y=\"%g\">%s</text>\n",
                          options_.width - kRight, bottom + 30, EscapeXml(labels.name));
  }

  // Calls `add` with each run of neighbours that have something to draw.
  template <typename Add>
  void ForRuns(const Curve& curve, const Add& add) const {
    const std::vector<CurvePoint>& points = curve.points;
    for (size_t begin = 0; begin < points.size();) {
      size_t end = begin;
      while (end < points.size() && points[end].drawn()) ++end;
      if (end > begin) add(begin, end);
      begin = std::max(end, begin) + 1;
    }
  }

  void AddBands(size_t index) {
    const std::vector<CurvePoint>& points = curves_[index].points;
    ForRuns(curves_[index], [&](size_t begin, size_t end) {
      std::string corners;
      bool any = false;
      for (size_t i = begin; i < end; ++i) {
        any = any || points[i].low < points[i].high;
        absl::StrAppendFormat(&corners, "%.1f,%.1f ", X(points[i].x), Y(points[i].high));
      }
      for (size_t i = end; i > begin; --i) {
        absl::StrAppendFormat(&corners, "%.1f,%.1f ", X(points[i - 1].x), Y(points[i - 1].low));
      }
      corners.pop_back();
      if (!any) return;
      absl::StrAppendFormat(&svg_, "<polygon class=\"band c%d\" points=\"%s\"/>\n", index, corners);
    });
  }

  void AddLines(size_t index) {
    const std::vector<CurvePoint>& points = curves_[index].points;
    ForRuns(curves_[index], [&](size_t begin, size_t end) {
      if (end == begin + 1) {
        absl::StrAppendFormat(&svg_,
                              "<circle class=\"dot c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>\n",
                              index, X(points[begin].x), Y(points[begin].middle));
        return;
      }
      std::string corners;
      for (size_t i = begin; i < end; ++i) {
        absl::StrAppendFormat(&corners, "%s%.1f,%.1f", i > begin ? " " : "", X(points[i].x),
                              Y(points[i].middle));
      }
      absl::StrAppendFormat(&svg_, "<polyline class=\"line c%d\" points=\"%s\"/>\n", index,
                            corners);
    });
  }

  void AddAlarms(const Curve& curve) {
    for (const CurvePoint& point : curve.points) {
      if (point.non_finite == 0) continue;
      absl::StrAppendFormat(&svg_, "<text class=\"alarm\" x=\"%.1f\" y=\"%g\">×</text>\n",
                            X(point.x), kTop - 4);
    }
  }

  const std::vector<Curve>& curves_;
  const SvgOptions& options_;
  const Extent x_;
  const Extent y_;
  std::string svg_;
};

}  // namespace

std::string EscapeXml(absl::string_view text) {
  std::string escaped;
  for (const char c : ValidUtf8(Printable(text))) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string SvgChart(const std::vector<Curve>& curves, const SvgOptions& options) {
  return SvgWriter(curves, options).Write();
}

}  // namespace tacho::ctl
