#include "client/ctl/output/sample_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/series_name.h"
#include "client/ctl/text/sparkline.h"
#include "client/ctl/text/time_format.h"

namespace tacho::ctl {
namespace {

std::string StepText(const std::optional<int64_t>& step) { return step ? absl::StrCat(*step) : ""; }

std::string StepsText(const std::optional<int64_t>& first, const std::optional<int64_t>& last) {
  if (!first || first == last) return StepText(first);
  return absl::StrCat(*first, "..", StepText(last));
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
    // With a limit of 1 the newest row is what is wanted.
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

// What a joined line shows of one series.
struct LineCell {
  int64_t time_unix_ns = 0;
  std::string steps;
  double value = 0;
};

LineCell CellOf(const SampleSeries& series, size_t index, bool reduced) {
  if (!reduced) {
    const Point& point = series.points[index];
    return {point.time_unix_ns, StepText(point.step), point.value};
  }
  const Bucket& bucket = series.buckets[index];
  return {bucket.first_time_unix_ns, StepsText(bucket.first_step, bucket.last_step), bucket.avg};
}

}  // namespace

Table PointTable(const Environment& env, const SampleSeries& series, size_t limit) {
  const std::vector<Point>& points = series.points;
  TableOfColumns table;
  table.Add(
      TimeHeading(env),
      ReadableTimes(Collect(points, [](const Point& p) { return p.time_unix_ns; }), env.zone));
  if (std::any_of(points.begin(), points.end(), [](const Point& p) { return p.step; })) {
    table.Add("STEP", Collect(points, [](const Point& p) { return StepText(p.step); }));
  }
  table.Add("VALUE", ReadableColumn(Collect(points, [](const Point& p) { return p.value; })));
  if (std::any_of(points.begin(), points.end(), [](const Point& p) { return p.attempt > 0; })) {
    table.Add("ATTEMPT", Collect(points, [](const Point& p) { return absl::StrCat(p.attempt); }));
  }
  return std::move(table).Build(points.size(), limit);
}

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

}  // namespace tacho::ctl
