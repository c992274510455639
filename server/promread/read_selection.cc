// Jobs first, then the metrics of each, then series: each stage leaves out what a matcher refuses,
// so that the index is asked for little. All matchers are applied to the finished labels at the
// end, and decide alone.
#include "server/promread/read_selection.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/promread/kept_jobs.h"
#include "server/promread/read_time.h"
#include "server/promread/step_series.h"

namespace tacho::server::promread {
namespace {

// Whether the matchers on one label all take this value.
bool TakesValue(const std::vector<storage::Matcher>& matchers, absl::string_view label,
                absl::string_view value) {
  return std::all_of(matchers.begin(), matchers.end(), [&](const storage::Matcher& matcher) {
    return matcher.label() != label || matcher.MatchesValue(value);
  });
}

bool HasRowsIn(const storage::Extent& extent, const TimeSpan& span) {
  return extent.first_time_ns <= extent.last_time_ns && extent.last_time_ns >= span.begin_ns &&
         (span.end_ns == INT64_MAX || extent.first_time_ns < span.end_ns);
}

std::vector<std::string> JobsOf(const SelectionWorld& world, const ReadQuery& query,
                                const TimeSpan& span) {
  std::vector<std::string> jobs;
  for (const storage::Matcher& matcher : query.matchers) {
    if (matcher.label() != "job" || matcher.op() != storage::Matcher::Op::kEqual) continue;
    // One job that is named: no look at all the others.
    const std::string& job = matcher.value();
    if (TakesValue(query.matchers, "job", job) && world.rights.MayTouch(job) &&
        MayKeepJob(world.membership, job)) {
      jobs.push_back(job);
    }
    return jobs;
  }
  for (const storage::JobSummary& job : world.store.Jobs()) {
    if (TakesValue(query.matchers, "job", job.name) && HasRowsIn(job.extent, span) &&
        world.rights.MayTouch(job.name) && MayKeepJob(world.membership, job.name)) {
      jobs.push_back(job.name);
    }
  }
  return jobs;
}

// What to ask the index of one job for; nullopt: none of its metrics fits.
absl::StatusOr<std::optional<storage::Selector>> SelectorOf(const SelectionWorld& world,
                                                            const ReadQuery& query,
                                                            const std::string& job) {
  storage::Selector selector;
  selector.job = job;
  TACHO_ASSIGN_OR_RETURN(const auto metrics, world.store.Metrics(job));
  for (const storage::MetricUse& use : metrics) {
    const MetricLabels labels = MetricLabelsOf(use.metric);
    if (TakesValue(query.matchers, kNameLabel, labels.name) &&
        TakesValue(query.matchers, "metric", labels.metric)) {
      selector.metrics.push_back(use.metric.name);
    }
  }
  if (selector.metrics.empty()) return std::nullopt;
  if (selector.metrics.size() == metrics.size()) selector.metrics.clear();  // Every one.
  for (const storage::Matcher& matcher : query.matchers) {
    if (MeansTheSameInStore(matcher)) selector.matchers.push_back(matcher);
  }
  return selector;
}

absl::Status VisitSeriesOf(const SelectionWorld& world, const ReadQuery& query,
                           const std::string& job,
                           absl::FunctionRef<absl::Status(SelectedSeries)> visit) {
  TACHO_ASSIGN_OR_RETURN(const auto attempts, SelectedAttempts(world, query, job));
  if (attempts.empty()) return absl::OkStatus();
  if (AsksForSteps(query.matchers)) {
    TACHO_RETURN_IF_ERROR(VisitStepSeries(world, query, job, attempts, visit));
  }
  auto selector = SelectorOf(world, query, job);
  if (absl::IsNotFound(selector.status())) return absl::OkStatus();  // Dropped since.
  if (!selector.ok() || !selector->has_value()) return selector.status();
  auto found = world.store.FindSeries(**selector, world.max_series);
  if (absl::IsResourceExhausted(found.status())) return TooManySeries(world.max_series);
  if (!found.ok()) return found.status();
  const bool keeps_all = world.membership == nullptr || !world.membership->IsSplit(job);
  for (const storage::SeriesPtr& series : *found) {
    if (!keeps_all && !world.membership->Keeps(job, series->source->host)) continue;
    for (const uint32_t attempt : attempts) {
      LabelList labels = LabelsOf(*series, attempt);
      if (!MatchesAll(query.matchers, labels)) continue;
      TACHO_RETURN_IF_ERROR(visit({series, attempt, std::move(labels), {}}));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TooManySeries(uint64_t limit) {
  return errors::ErrorOf(
      errors::Failure::kTooLarge,
      absl::StrCat("the query selects more than ", limit, " series (query.max_series, and ",
                   kMaxReadSeries, " at most): name a job, a metric or labels"));
}

std::vector<std::string> SelectedJobs(const SelectionWorld& world, const ReadQuery& query) {
  const TimeSpan span = TimeSpanOf(query);
  if (span.begin_ns >= span.end_ns) return {};
  return JobsOf(world, query, span);
}

absl::StatusOr<std::vector<uint32_t>> SelectedAttempts(const SelectionWorld& world,
                                                       const ReadQuery& query,
                                                       const std::string& job) {
  TACHO_ASSIGN_OR_RETURN(const auto all, world.store.Attempts(job));
  const TimeSpan span = TimeSpanOf(query);
  std::vector<uint32_t> attempts;
  for (const storage::AttemptInfo& info : all) {
    if (HasRowsIn(info.extent, span) &&
        TakesValue(query.matchers, "attempt", absl::StrCat(info.attempt))) {
      attempts.push_back(info.attempt);
    }
  }
  return attempts;
}

absl::Status VisitSeries(const SelectionWorld& world, const ReadQuery& query,
                         absl::FunctionRef<absl::Status(SelectedSeries)> visit) {
  for (const std::string& job : SelectedJobs(world, query)) {
    TACHO_RETURN_IF_ERROR(world.control.Check());
    TACHO_RETURN_IF_ERROR(VisitSeriesOf(world, query, job, visit));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SelectedSeries>> SelectSeries(const SelectionWorld& world,
                                                         const ReadQuery& query) {
  std::vector<SelectedSeries> selected;
  TACHO_RETURN_IF_ERROR(VisitSeries(world, query, [&](SelectedSeries one) {
    if (selected.size() == world.max_series) return TooManySeries(world.max_series);
    selected.push_back(std::move(one));
    return absl::OkStatus();
  }));
  // A stored series of the same labels, which somebody has written back, comes before the steps.
  std::sort(selected.begin(), selected.end(), [](const auto& a, const auto& b) {
    return a.labels != b.labels ? a.labels < b.labels : a.steps.has_value() < b.steps.has_value();
  });
  const auto same = [](const auto& a, const auto& b) { return a.labels == b.labels; };
  selected.erase(std::unique(selected.begin(), selected.end(), same), selected.end());
  return selected;
}

}  // namespace tacho::server::promread
