// Draws curves with characters: braille dots where colours tell curves apart, marks elsewhere.
// The grid takes what axes and labels leave of the width.
#include "client/ctl/text/plot.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/dot_canvas.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

constexpr std::array<int, kMostCurves> kColors = {36, 33, 35, 32, 34, 31, 37, 90};
constexpr int kAlarmColor = 31;
constexpr std::array<const char*, kMostCurves> kMarks = {"●", "○", "▲", "△", "■", "□", "◆", "◇"};
constexpr std::array<const char*, kMostCurves> kAsciiMarks = {"*", "o", "+", "x",
                                                              "#", "@", "%", "&"};
constexpr size_t kRowsPerTick = 4;
constexpr size_t kColumnsPerTick = 10;

bool HasBand(const Curve& curve) {
  return std::any_of(curve.points.begin(), curve.points.end(),
                     [](const CurvePoint& p) { return p.drawn() && p.low < p.high; });
}

class Plotter {
 public:
  Plotter(const std::vector<Curve>& curves, const PlotOptions& options)
      : curves_(curves),
        options_(options),
        width_(std::max(options.width, kNarrowestPlot)),
        x_(ExtentOfX(curves)),
        y_(ExtentOfY(curves, options.log_scale)),
        y_ticks_(options.log_scale
                     ? LogTicks(y_.low, y_.high, 1 + options.height / kRowsPerTick)
                     : LinearTicks(y_.low, y_.high, 1 + options.height / kRowsPerTick)),
        margin_(WidestLabel()),
        // Without colour only marks tell curves apart.
        ink_(options.unicode && (options.color || curves.size() == 1) ? Ink::kBraille
                                                                      : Ink::kMarks),
        canvas_(width_ - margin_ - 2, options.height, ink_, options.unicode),
        x_labels_(LabelAxis(options.axis, x_, 1 + canvas_.columns() / kColumnsPerTick, options.zone,
                            options.zone_name)) {}

  std::vector<std::string> Draw() {
    for (size_t i = 0; i < curves_.size(); ++i) ShadeBand(i);
    for (size_t i = 0; i < curves_.size(); ++i) DrawLine(i);
    std::vector<std::string> lines;
    lines.push_back(Shorten(absl::StrCat(Printable(options_.title), " by ", x_labels_.name,
                                         options_.log_scale ? ", log scale" : ""),
                            width_, options_.unicode));
    AddAlarms(lines);
    AddGrid(lines);
    AddAxis(lines);
    AddLegend(lines);
    return lines;
  }

 private:
  size_t WidestLabel() const {
    size_t widest = 0;
    for (const Tick& tick : y_ticks_) widest = std::max(widest, tick.label.size());
    return widest;
  }

  int ColorOf(size_t curve) const { return options_.color ? kColors[curve % kMostCurves] : 0; }
  const char* MarkOf(size_t curve) const {
    return (options_.unicode ? kMarks : kAsciiMarks)[curve % kMostCurves];
  }

  static size_t Place(double share, size_t places) {
    const double at = share * static_cast<double>(places - 1);
    return static_cast<size_t>(std::clamp(at + 0.5, 0.0, static_cast<double>(places - 1)));
  }
  size_t Column(double x, size_t columns) const { return Place(Share(x, x_, false), columns); }
  size_t Row(double y, size_t rows) const {
    // A value that has no logarithm is drawn at the bottom.
    const double shown = options_.log_scale ? std::max(y, y_.low) : y;
    return rows - 1 - Place(Share(shown, y_, options_.log_scale), rows);
  }
  bool Shown(const CurvePoint& point) const {
    return point.drawn() && (!options_.log_scale || point.middle > 0);
  }

  // The rows that the band reaches over in each column: between two places it is a straight strip.
  void ShadeBand(size_t index) {
    if (!HasBand(curves_[index])) return;
    const std::vector<CurvePoint>& points = curves_[index].points;
    const size_t none = canvas_.rows();
    std::vector<std::pair<size_t, size_t>> reach(canvas_.columns(), {none, 0});
    const auto widen = [&](size_t column, double low, double high) {
      reach[column].first = std::min(reach[column].first, Row(high, canvas_.rows()));
      reach[column].second = std::max(reach[column].second, Row(low, canvas_.rows()));
    };
    const CurvePoint* before = nullptr;
    for (const CurvePoint& point : points) {
      const bool shown = point.drawn() && (!options_.log_scale || point.high > 0);
      if (shown) {
        const size_t to = Column(point.x, canvas_.columns());
        widen(to, point.low, point.high);
        if (before != nullptr) {
          const size_t from = Column(before->x, canvas_.columns());
          for (size_t column = from + 1; column < to; ++column) {
            const double share =
                static_cast<double>(column - from) / static_cast<double>(to - from);
            widen(column, before->low + share * (point.low - before->low),
                  before->high + share * (point.high - before->high));
          }
        }
      }
      before = shown ? &point : nullptr;
    }
    for (size_t column = 0; column < reach.size(); ++column) {
      if (reach[column].first == none) continue;
      canvas_.Shade(column, reach[column].first, reach[column].second, ColorOf(index));
    }
  }

  void DrawLine(size_t index) {
    const CurvePoint* before = nullptr;
    const auto x = [&](const CurvePoint& p) { return Column(p.x, canvas_.dot_columns()); };
    const auto y = [&](const CurvePoint& p) { return Row(p.middle, canvas_.dot_rows()); };
    for (const CurvePoint& point : curves_[index].points) {
      if (!Shown(point)) {
        before = nullptr;
        continue;
      }
      const CurvePoint& from = before == nullptr ? point : *before;
      canvas_.Line(x(from), y(from), x(point), y(point), MarkOf(index), ColorOf(index));
      before = &point;
    }
  }

  void AddAlarms(std::vector<std::string>& lines) const {
    std::string marks(canvas_.columns(), ' ');
    bool any = false;
    for (const Curve& curve : curves_) {
      for (const CurvePoint& point : curve.points) {
        if (point.non_finite == 0) continue;
        marks[Column(point.x, canvas_.columns())] = '!';
        any = true;
      }
    }
    if (!any) return;
    marks.erase(marks.find_last_not_of(' ') + 1);
    std::string text;
    for (const char c : marks) {
      text += c == ' ' ? " "
                       : Colored(options_.unicode ? "×" : "!", kAlarmColor, false, options_.color);
    }
    lines.push_back(std::string(margin_ + 2, ' ') + text);
  }

  void AddGrid(std::vector<std::string>& lines) const {
    std::vector<std::string> labels(canvas_.rows());
    for (const Tick& tick : y_ticks_) labels[Row(tick.value, canvas_.rows())] = tick.label;
    for (size_t row = 0; row < canvas_.rows(); ++row) {
      const std::string& label = labels[row];
      const char* edge =
          options_.unicode ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+");
      lines.push_back(absl::StrCat(std::string(margin_ - label.size(), ' '), label, " ", edge,
                                   canvas_.Row(row, options_.color)));
    }
  }

  void AddAxis(std::vector<std::string>& lines) const {
    std::string axis(margin_ + 1, ' ');
    std::string labels(margin_ + 2, ' ');
    std::vector<bool> is_tick(canvas_.columns(), false);
    for (const Tick& tick : x_labels_.ticks) {
      const size_t column = Column(tick.value, canvas_.columns());
      const size_t centre = margin_ + 2 + column;
      size_t begin = centre - std::min(centre, tick.label.size() / 2);
      begin = std::min(begin, width_ - std::min(width_, tick.label.size()));
      if (begin < labels.size() && !is_tick.empty() && labels.find_last_not_of(' ') + 1 >= begin &&
          labels.find_first_not_of(' ') != std::string::npos) {
        continue;
      }
      is_tick[column] = true;
      labels.resize(std::max(labels.size(), begin + tick.label.size() + 1), ' ');
      labels.replace(begin, tick.label.size(), tick.label);
    }
    absl::StrAppend(&axis, options_.unicode ? "└" : "+");
    for (const bool tick : is_tick) {
      axis += options_.unicode ? (tick ? "┬" : "─") : (tick ? "+" : "-");
    }
    lines.push_back(std::move(axis));
    labels.erase(labels.find_last_not_of(' ') + 1);
    lines.push_back(std::move(labels));
  }

  void AddLegend(std::vector<std::string>& lines) const {
    bool any_band = false;
    uint64_t non_finite = 0;
    for (size_t i = 0; i < curves_.size(); ++i) {
      any_band = any_band || HasBand(curves_[i]);
      const char* mark = ink_ == Ink::kBraille ? "──" : MarkOf(i);
      lines.push_back(
          absl::StrCat(Colored(mark, ColorOf(i), false, options_.color), " ",
                       Shorten(LegendText(curves_[i], non_finite), width_ - 3, options_.unicode)));
    }
    std::string note;
    if (any_band) note = options_.unicode ? "░ lowest to highest" : ". lowest to highest";
    if (non_finite > 0) {
      absl::StrAppend(&note, note.empty() ? "" : ", ", options_.unicode ? "×" : "!", " ",
                      Count(non_finite, "value"), " NaN or infinite");
    }
    if (!note.empty()) lines.push_back(Shorten(note, width_, options_.unicode));
  }

  static std::string LegendText(const Curve& curve, uint64_t& non_finite) {
    Extent reach{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    double last = kNotANumber;
    for (const CurvePoint& point : curve.points) {
      non_finite += point.non_finite;
      if (!point.drawn()) continue;
      reach.low = std::min(reach.low, point.low);
      reach.high = std::max(reach.high, point.high);
      last = point.middle;
    }
    const std::string name = Printable(curve.name);
    if (std::isnan(last)) return absl::StrCat(name, ": nothing finite");
    return absl::StrCat(name, ": last ", ReadableNumber(curve.last.value_or(last)), ", min ",
                        ReadableNumber(reach.low), ", max ", ReadableNumber(reach.high));
  }

  const std::vector<Curve>& curves_;
  const PlotOptions& options_;
  const size_t width_;
  const Extent x_;
  const Extent y_;
  const std::vector<Tick> y_ticks_;
  const size_t margin_;
  const Ink ink_;
  DotCanvas canvas_;
  const AxisLabels x_labels_;
};

}  // namespace

std::vector<std::string> DrawPlot(const std::vector<Curve>& curves, const PlotOptions& options) {
  return Plotter(curves, options).Draw();
}

}  // namespace tacho::ctl
