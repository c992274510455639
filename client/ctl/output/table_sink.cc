#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/output/sample_sink.h"
#include "client/ctl/output/sample_table.h"
#include "client/ctl/output/side_by_side.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/series_name.h"
#include "client/ctl/text/sparkline.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

// A person reads the beginning and the end of a long table.
constexpr size_t kTerminalRows = 40;
constexpr size_t kSparklineWidth = 60;
constexpr size_t kNarrowSparkline = 20;

class TableSink : public SampleSink {
 public:
  TableSink(const Environment& env, const QueryOptions& options) : env_(env), options_(options) {}

  void Begin(const v1::SeriesInfo& series) override { series_.push_back({series, {}, {}}); }

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
                << " samples; for all of them use -o csv or -o json, for an overview --points 60\n";
    }
  }

 private:
  size_t RowLimit() const {
    const size_t limit = options_.limit.value_or(env_.out_is_terminal ? kTerminalRows : 0);
    return limit == 0 ? std::numeric_limits<size_t>::max() : limit;
  }

  // One line a series: what it looks like and where it goes.
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
              << '\n';
    const Table table = options_.reduced() ? BucketTable(env_, series, RowLimit())
                                           : PointTable(env_, series, RowLimit());
    cut_ = cut_ || std::max(series.points.size(), series.buckets.size()) > RowLimit();
    table.Print(*env_.out, env_.width, env_.unicode);
  }

  void PrintHowToSeeAll() const {
    *env_.out << "\nAll rows: --limit 0, or -o csv."
              << (options_.reduced() ? "" : " An overview: --points 40.") << '\n';
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
