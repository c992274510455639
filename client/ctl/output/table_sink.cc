// The tables of 'tachoctl query': series side by side where their rows coincide and the terminal is
// wide enough, else one table each. A table has to know its widths, so all samples are held first.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/output/sample_sink.h"
#include "client/ctl/output/side_by_side.h"
#include "client/ctl/text/dot_canvas.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/samples.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

std::string StepCell(const std::optional<int64_t>& step) { return step ? absl::StrCat(*step) : ""; }

std::string StepsText(const std::optional<int64_t>& first, const std::optional<int64_t>& last) {
  if (!first || first == last) return StepCell(first);
  return absl::StrCat(*first, "..", StepCell(last));
}

std::string TimeHeading(const Environment& env) {
  return absl::StrCat("TIME (", ZoneName(env.now, env.zone), ")");
}

// Columns of equal length become the rows of a table; a column without heading is left out.
class TableOfColumns {
 public:
  void Add(std::string heading, std::vector<std::string> cells) {
    columns_.push_back({std::move(heading), Align::kRight, false});
    cells_.push_back(std::move(cells));
  }

  Table Build(size_t rows, size_t limit) && {
    Table table(std::move(columns_));
    // A limit of 1 shows the newest row.
    const size_t head = rows <= limit ? rows : limit / 2;
    const size_t tail = rows <= limit ? 0 : limit - head;
    AddRows(table, 0, head);
    if (head + tail < rows) {
      table.AddRemark(absl::StrCat("  ... ", Thousands(rows - head - tail), " more ..."));
    }
    AddRows(table, rows - tail, rows);
    return table;
  }

 private:
  void AddRows(Table& table, size_t begin, size_t end) const {
    for (size_t row = begin; row < end; ++row) {
      std::vector<std::string> cells;
      for (const auto& column : cells_) cells.push_back(column[row]);
      table.AddRow(std::move(cells));
    }
  }

  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> cells_;
};

template <typename Row, typename Get>
auto Collect(const std::vector<Row>& rows, const Get& get) {
  std::vector<decltype(get(rows[0]))> values;
  values.reserve(rows.size());
  for (const Row& row : rows) values.push_back(get(row));
  return values;
}

// The part of a joined line that belongs to one series.
struct LineCell {
  int64_t time_unix_ns = 0;
  std::string steps;
  double value = 0;
};

LineCell CellOf(const SampleSeries& series, size_t index, bool reduced) {
  if (!reduced) {
    const Point& point = series.points[index];
    return {point.time_unix_ns, StepCell(point.step), point.value};
  }
  const Bucket& bucket = series.buckets[index];
  return {bucket.first_time_unix_ns, StepsText(bucket.first_step, bucket.last_step), bucket.avg};
}

// In all tables at most `limit` rows are shown, the first and the last, with a remark between.

// TIME STEP VALUE ATTEMPT, without columns that would be empty.
Table PointTable(const Environment& env, const SampleSeries& series, size_t limit) {
  const std::vector<Point>& points = series.points;
  TableOfColumns table;
  table.Add(
      TimeHeading(env),
      ReadableTimes(Collect(points, [](const Point& p) { return p.time_unix_ns; }), env.zone));
  if (std::any_of(points.begin(), points.end(), [](const Point& p) { return p.step; })) {
    table.Add("STEP", Collect(points, [](const Point& p) { return StepCell(p.step); }));
  }
  table.Add("VALUE", ReadableColumn(Collect(points, [](const Point& p) { return p.value; })));
  if (std::any_of(points.begin(), points.end(), [](const Point& p) { return p.attempt > 0; })) {
    table.Add("ATTEMPT", Collect(points, [](const Point& p) { return absl::StrCat(p.attempt); }));
  }
  return std::move(table).Build(points.size(), limit);
}

// TIME STEPS MIN AVG MAX LAST SAMPLES NON-FINITE, without columns that would be empty.
Table BucketTable(const Environment& env, const SampleSeries& series, size_t limit) {
  const std::vector<Bucket>& buckets = series.buckets;
  TableOfColumns table;
  const auto add_values = [&](const char* heading, double Bucket::*member) {
    table.Add(heading,
              ReadableColumn(Collect(buckets, [=](const Bucket& b) { return b.*member; })));
  };
  table.Add(TimeHeading(env),
            ReadableTimes(Collect(buckets, [](const Bucket& b) { return b.first_time_unix_ns; }),
                          env.zone));
  if (std::any_of(buckets.begin(), buckets.end(), [](const Bucket& b) { return b.first_step; })) {
    table.Add("STEPS", Collect(buckets, [](const Bucket& b) {
                return StepsText(b.first_step, b.last_step);
              }));
  }
  add_values("MIN", &Bucket::min);
  add_values("AVG", &Bucket::avg);
  add_values("MAX", &Bucket::max);
  add_values("LAST", &Bucket::last);
  table.Add("SAMPLES", Collect(buckets, [](const Bucket& b) { return absl::StrCat(b.count); }));
  if (std::any_of(buckets.begin(), buckets.end(), [](const Bucket& b) { return b.non_finite; })) {
    table.Add("NON-FINITE",
              Collect(buckets, [](const Bucket& b) { return absl::StrCat(b.non_finite); }));
  }
  return std::move(table).Build(buckets.size(), limit);
}

// TIME STEP and one column a series: its values, or the averages of its buckets.
Table JoinedTable(const Environment& env, const QueryOptions& options,
                  const std::vector<SampleSeries>& series, const Lines& lines, size_t limit) {
  std::vector<int64_t> times(lines.size(), std::numeric_limits<int64_t>::max());
  std::vector<std::string> steps(lines.size());
  std::vector<std::vector<std::string>> values;
  bool any_steps = false;
  for (size_t i = 0; i < series.size(); ++i) {
    std::vector<double> present;
    for (size_t line = 0; line < lines.size(); ++line) {
      if (lines[line][i] == kNone) continue;
      const LineCell cell = CellOf(series[i], lines[line][i], options.reduced());
      times[line] = std::min(times[line], cell.time_unix_ns);
      if (steps[line].empty()) steps[line] = cell.steps;
      any_steps = any_steps || !cell.steps.empty();
      present.push_back(cell.value);
    }
    const std::vector<std::string> texts = ReadableColumn(present);
    values.emplace_back();
    size_t next = 0;
    for (const auto& line : lines) {
      values.back().push_back(line[i] == kNone ? "" : texts[next++]);
    }
  }
  TableOfColumns table;
  if (options.by_step()) table.Add("STEP", steps);
  table.Add(TimeHeading(env), ReadableTimes(times, env.zone));
  if (!options.by_step() && any_steps) table.Add("STEP", steps);
  std::vector<const v1::SeriesInfo*> infos;
  for (const SampleSeries& one : series) infos.push_back(&one.info);
  const std::vector<std::string> names = ShortNames(infos);
  for (size_t i = 0; i < series.size(); ++i) table.Add(names[i], std::move(values[i]));
  return std::move(table).Build(lines.size(), limit);
}

// One line a series: name, sparkline, min, avg, max, last, samples.
void PrintShapeTable(const Environment& env, const std::vector<SampleSeries>& series,
                     const std::vector<std::string>& names, size_t sparkline_width) {
  Table table({{"SERIES", Align::kLeft, true},
               {"AVERAGES", Align::kLeft, false},
               {"MIN", Align::kRight, false},
               {"AVG", Align::kRight, false},
               {"MAX", Align::kRight, false},
               {"LAST", Align::kRight, false},
               {"SAMPLES", Align::kRight, false},
               {"NON-FINITE", Align::kRight, false}});
  for (size_t i = 0; i < series.size(); ++i) {
    double low = std::numeric_limits<double>::quiet_NaN();
    double high = low;
    double sum = 0;
    uint64_t samples = 0;
    uint64_t non_finite = 0;
    std::vector<double> averages;
    for (const Bucket& bucket : series[i].buckets) {
      low = std::fmin(low, bucket.min);
      high = std::fmax(high, bucket.max);
      const uint64_t finite = bucket.count - std::min(bucket.count, bucket.non_finite);
      if (finite > 0) sum += bucket.avg * static_cast<double>(finite);
      samples += bucket.count;
      non_finite += bucket.non_finite;
      averages.push_back(bucket.avg);
    }
    const uint64_t finite = samples - std::min(samples, non_finite);
    const double average =
        finite > 0 ? sum / static_cast<double>(finite) : std::numeric_limits<double>::quiet_NaN();
    const std::string last =
        series[i].buckets.empty() ? "" : ReadableNumber(series[i].buckets.back().last);
    table.AddRow({names[i], Sparkline(averages, sparkline_width, env.unicode), ReadableNumber(low),
                  ReadableNumber(average), ReadableNumber(high), last, absl::StrCat(samples),
                  non_finite == 0 ? "" : absl::StrCat(non_finite)});
  }
  table.Print(*env.out, env.width, env.unicode);
}

// A person reads the beginning and the end of a long table.
constexpr size_t kTerminalRows = 40;
constexpr size_t kSparklineWidth = 60;
constexpr size_t kNarrowSparkline = 20;

class TableSink : public SampleSink {
 public:
  TableSink(const Environment& env, const QueryOptions& options) : env_(env), options_(options) {}

  void Begin(const v1::SeriesInfo& series, uint64_t bucket_width) override {
    series_.push_back({series, {}, {}, bucket_width});
  }

  bool Add(const Point& point) override {
    series_.back().points.push_back(point);
    return ++held_ < kTableSamples;
  }

  bool Add(const Bucket& bucket) override {
    series_.back().buckets.push_back(bucket);
    return ++held_ < kTableSamples;
  }

  void Finish(const absl::Status&) override {
    if (series_.empty()) return;
    if (options_.reduced()) PrintShapes();
    if (!PrintTogether(series_)) PrintByMetric();
    if (cut_) PrintHowToSeeAll();
    if (held_ >= kTableSamples) {
      *env_.err << "tachoctl: a table holds at most " << Thousands(kTableSamples)
                << " samples; for all samples use -o csv or -o json, for an overview --points 60\n";
    }
  }

 private:
  size_t RowLimit() const {
    const size_t limit = options_.limit.value_or(env_.out_is_terminal ? kTerminalRows : 0);
    return limit == 0 ? std::numeric_limits<size_t>::max() : limit;
  }

  // Prints the shape of each series in one line.
  void PrintShapes() {
    std::vector<const v1::SeriesInfo*> infos;
    for (const SampleSeries& series : series_) infos.push_back(&series.info);
    const std::vector<std::string> names = ShortNames(infos);
    const size_t room = env_.width == 0
                            ? kSparklineWidth
                            : std::clamp<size_t>(env_.width / 3, kNarrowSparkline, kSparklineWidth);
    PrintShapeTable(env_, series_, names, room);
    *env_.out << '\n';
  }

  bool PrintTogether(const std::vector<SampleSeries>& series) {
    const std::optional<Lines> lines = options_.reduced() ? JoinBuckets(series, options_.by_step())
                                                          : JoinPoints(series, options_.by_step());
    if (series.size() == 1) {
      PrintBlock(series[0]);
      return true;
    }
    if (!lines) return false;
    const Table table = JoinedTable(env_, options_, series, *lines, RowLimit());
    if (env_.width > 0 && table.Width() > env_.width) return false;
    cut_ = cut_ || lines->size() > RowLimit();
    if (options_.reduced()) *env_.out << "Averages:\n";
    table.Print(*env_.out, env_.width, env_.unicode);
    return true;
  }

  void PrintByMetric() {
    for (size_t begin = 0; begin < series_.size();) {
      size_t end = begin;
      while (end < series_.size() &&
             series_[end].info.metric().name() == series_[begin].info.metric().name()) {
        ++end;
      }
      if (begin > 0) *env_.out << '\n';
      const bool all = begin == 0 && end == series_.size();
      const std::vector<SampleSeries> metric(series_.begin() + begin, series_.begin() + end);
      if (all || metric.size() == 1 || !PrintTogether(metric)) PrintBlocks(metric);
      begin = end;
    }
  }

  void PrintBlocks(const std::vector<SampleSeries>& series) {
    for (size_t i = 0; i < series.size(); ++i) {
      if (i > 0) *env_.out << '\n';
      PrintBlock(series[i]);
    }
  }

  void PrintBlock(const SampleSeries& series) {
    const std::string& unit = series.info.metric().unit();
    *env_.out << Printable(FullName(series.info))
              << (unit.empty() || unit == "1" ? "" : absl::StrCat(" [", Printable(unit), "]"))
              << WidthText(series) << '\n';
    const Table table = options_.reduced() ? BucketTable(env_, series, RowLimit())
                                           : PointTable(env_, series, RowLimit());
    cut_ = cut_ || std::max(series.points.size(), series.buckets.size()) > RowLimit();
    table.Print(*env_.out, env_.width, env_.unicode);
  }

  // ", points of 2.5 s each"
  std::string WidthText(const SampleSeries& series) const {
    if (series.bucket_width == 0) return "";
    if (options_.by_step()) return absl::StrCat(", points of ", Count(series.bucket_width, "step"));
    return absl::StrCat(", points of ",
                        ReadableNumber(static_cast<double>(series.bucket_width) / 1e9), " s");
  }

  void PrintHowToSeeAll() const {
    *env_.out << "\nFor all rows: --limit 0, or -o csv."
              << (options_.reduced() ? "" : " For an overview: --points 40.") << '\n';
  }

  const Environment& env_;
  const QueryOptions& options_;
  std::vector<SampleSeries> series_;
  size_t held_ = 0;
  bool cut_ = false;
};

}  // namespace

std::unique_ptr<SampleSink> MakeTableSink(const Environment& env, const QueryOptions& options) {
  return std::make_unique<TableSink>(env, options);
}

}  // namespace tacho::ctl
