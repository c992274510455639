// Lists a run's tags from its series: one for a metric, and one for each task if there are several.
// TensorBoard wants the newest step of each, which is looked up for many series at a time.
#include "server/tensorboard/tags.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/query/read/series_scan.h"

namespace tacho::server::tb {
namespace {

// Series whose newest samples are looked up between two looks at the query's control.
constexpr size_t kSeriesAtOnce = 1000;
// Most series go on until their attempt ends: their newest sample is found in its last minutes.
constexpr int64_t kTailNs = int64_t{600} * 1'000'000'000;

struct Newest {
  int64_t time_ns = 0;
  int64_t step = storage::kNoStep;
};

struct SeriesOfRun {
  storage::SeriesPtr series;
  Newest newest;
};

// Metrics that may have a tag of the filter: a tag begins with its metric's name.
std::vector<std::string> MetricsOf(const Run& run, const NameFilter& filter) {
  std::vector<std::string> names;
  for (const storage::Metric& metric : run.metrics) {
    const bool wanted = filter.all() || std::any_of(filter.names().begin(), filter.names().end(),
                                                    [&](const std::string& tag) {
                                                      return absl::StartsWith(tag, metric.name);
                                                    });
    if (wanted) names.push_back(metric.name);
  }
  return names;
}

absl::StatusOr<std::optional<Newest>> NewestSince(const storage::Store& store, const Run& run,
                                                  const storage::SeriesPtr& series,
                                                  int64_t begin_ns,
                                                  const query::QueryControl& control) {
  storage::ReadOptions read;
  read.attempt = run.attempt.attempt;
  read.begin_ns = begin_ns;
  std::optional<Newest> newest;
  query::SeriesScan scan(store.Read(series, read), query::AttemptCondition(), control);
  TACHO_RETURN_IF_ERROR(scan.ForEach(storage::AnySummary(), [&](const storage::Chunk& chunk) {
    const storage::LatestSample last = storage::LastOf(series, chunk);
    newest = Newest{last.time_ns, last.step};
  }));
  return newest;
}

// Finds it in this run, where the series' newest sample is of another one.
absl::StatusOr<std::optional<Newest>> NewestOfRun(const storage::Store& store, const Run& run,
                                                  const storage::SeriesPtr& series,
                                                  const query::QueryControl& control) {
  const storage::Extent& extent = run.attempt.extent;
  if (extent.first_time_ns > extent.last_time_ns) return std::nullopt;
  const int64_t tail_ns = std::max(extent.first_time_ns, extent.last_time_ns - kTailNs);
  auto newest = NewestSince(store, run, series, tail_ns, control);
  if (!newest.ok() || newest->has_value() || tail_ns == extent.first_time_ns) return newest;
  return NewestSince(store, run, series, extent.first_time_ns, control);
}

absl::StatusOr<std::vector<SeriesOfRun>> FindSeriesOfRun(const storage::Store& store,
                                                         const Run& run, const NameFilter& filter,
                                                         uint64_t max_series,
                                                         const query::QueryControl& control) {
  std::vector<SeriesOfRun> found;
  storage::Selector selector;
  selector.job = run.job;
  selector.metrics = MetricsOf(run, filter);
  if (selector.metrics.empty()) return found;
  auto all = store.FindSeries(selector, max_series);
  if (absl::IsResourceExhausted(all.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("run \"", run.name, "\" has more than query.max_series = ", max_series,
                     " series: choose tags"));
  }
  if (!all.ok()) return all.status();
  for (size_t begin = 0; begin < all->size(); begin += kSeriesAtOnce) {
    TACHO_RETURN_IF_ERROR(control.Check());
    const size_t end = std::min(all->size(), begin + kSeriesAtOnce);
    const std::vector<storage::SeriesPtr> chunk(all->begin() + static_cast<ptrdiff_t>(begin),
                                                all->begin() + static_cast<ptrdiff_t>(end));
    TACHO_ASSIGN_OR_RETURN(auto latest, store.LatestOf(chunk));
    for (size_t i = 0; i < chunk.size(); ++i) {
      const auto& sample = latest[i];
      if (!sample.has_value()) continue;
      if (sample->attempt == run.attempt.attempt) {
        found.push_back({chunk[i], {sample->time_ns, sample->step}});
      } else if (!run.only_attempt) {
        TACHO_ASSIGN_OR_RETURN(auto newest, NewestOfRun(store, run, chunk[i], control));
        if (newest.has_value()) found.push_back({chunk[i], *newest});
      }
    }
  }
  return found;
}

std::string LabelsText(const storage::Series& series) {
  std::string text;
  for (const auto& [name, value] : *series.labels) {
    absl::StrAppend(&text, text.empty() ? "{" : ",", name, "=", value);
  }
  return text.empty() ? text : text + "}";
}

std::string SourceText(const storage::SeriesSource& source) {
  return source.task.has_value() ? absl::StrCat("task", *source.task) : source.host;
}

void AddTag(std::string name, std::vector<SeriesOfRun>::const_iterator begin,
            std::vector<SeriesOfRun>::const_iterator end, const NameFilter& filter,
            std::vector<ScalarTag>* tags) {
  if (!filter.Allows(name)) return;
  ScalarTag& tag = tags->emplace_back();
  tag.name = std::move(name);
  for (auto one = begin; one != end; ++one) {
    tag.series.push_back(one->series);
    tag.by_step = tag.by_step || one->newest.step != storage::kNoStep;
    tag.last_step = std::max(tag.last_step, one->newest.step);
    tag.last_time_ns = tag.series.size() == 1 ? one->newest.time_ns
                                              : std::max(tag.last_time_ns, one->newest.time_ns);
  }
}

// Tags of the series of one metric and one set of labels.
void AddTags(std::vector<SeriesOfRun>::const_iterator begin,
             std::vector<SeriesOfRun>::const_iterator end, const Run& run, const NameFilter& filter,
             std::vector<ScalarTag>* tags) {
  const std::string name = begin->series->metric->name + LabelsText(*begin->series);
  AddTag(name, begin, end, filter, tags);
  const auto count = static_cast<size_t>(end - begin);
  if (count == 1 || count > kMaxTagsBesideMean) return;
  for (auto one = begin; one != end;) {
    const std::string text = SourceText(*one->series->source);
    const auto next = std::find_if(
        one, end, [&](const auto& other) { return SourceText(*other.series->source) != text; });
    std::string own = absl::StrCat(name, "/", text);
    // A metric of that very name keeps it.
    const bool taken = std::any_of(run.metrics.begin(), run.metrics.end(),
                                   [&](const auto& metric) { return metric.name == own; });
    if (!taken) AddTag(std::move(own), one, next, filter, tags);
    one = next;
  }
}

}  // namespace

absl::StatusOr<TagsOfRun> FindScalarTags(const storage::Store& store, const Run& run,
                                         const NameFilter& filter, uint64_t max_series,
                                         const query::QueryControl& control) {
  auto series = FindSeriesOfRun(store, run, filter, max_series, control);
  if (!series.ok()) return series.status();
  const auto group = [](const SeriesOfRun& one) {
    return std::tie(one.series->metric->name, one.series->labels->labels);
  };
  // Within a group they stay in the order of task and host.
  std::stable_sort(series->begin(), series->end(),
                   [&](const auto& a, const auto& b) { return group(a) < group(b); });
  TagsOfRun found;
  for (auto begin = series->cbegin(); begin != series->cend();) {
    const auto end = std::find_if(begin, series->cend(),
                                  [&](const auto& one) { return group(one) != group(*begin); });
    const size_t before = found.tags.size();
    AddTags(begin, end, run, filter, &found.tags);
    if (found.tags.size() > before) {
      for (auto one = begin; one != end; ++one) found.distinct_series.push_back(one->series);
    }
    begin = end;
  }
  return found;
}

}  // namespace tacho::server::tb
