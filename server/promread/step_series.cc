// Series of one task share most of their rows. So the rows of the first one are held, and each
// further series adds those that are not there yet, which are few or none. No way leads from a task
// to the time columns of its layouts alone, where the steps are.
#include "server/promread/step_series.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/promread/kept_jobs.h"
#include "server/promread/series_labels.h"
#include "server/query/read/series_scan.h"

namespace tacho::server::promread {
namespace {

using storage::Matcher;

constexpr uint64_t kDayNs = uint64_t{86'400} * 1'000'000'000;

using StepRow = std::pair<int64_t, int64_t>;  // Time in ns, step.

// Rows of one day, ascending and distinct.
class StepRows {
 public:
  // Rows of one series, ascending. False: there would be too many.
  bool Add(int64_t time_ns, int64_t step) {
    const StepRow row = {time_ns, step};
    while (at_ < rows_.size() && rows_[at_] < row) ++at_;
    if (at_ < rows_.size() && rows_[at_] == row) return true;
    if (rows_.size() + more_.size() == kMaxStepRowsOfDay) return false;
    if (more_.empty() || more_.back() != row) more_.push_back(row);
    return true;
  }
  void EndSeries() {
    at_ = 0;
    if (more_.empty()) return;
    const auto middle = static_cast<ptrdiff_t>(rows_.size());
    rows_.insert(rows_.end(), more_.begin(), more_.end());
    std::inplace_merge(rows_.begin(), rows_.begin() + middle, rows_.end());
    more_.clear();
  }
  void Clear() { rows_.clear(); }
  const std::vector<StepRow>& rows() const { return rows_; }

 private:
  std::vector<StepRow> rows_;
  std::vector<StepRow> more_;  // Of the series at hand, which are not in rows_.
  size_t at_ = 0;
};

LabelList StepLabels(const StepSource& source, uint32_t attempt) {
  LabelList labels = {{std::string(kNameLabel), std::string(kStepMetric)},
                      {"attempt", absl::StrCat(attempt)}};
  if (!source.host.empty()) labels.emplace_back("host", source.host);
  labels.emplace_back("job", source.job);
  if (source.task.has_value()) labels.emplace_back("task", absl::StrCat(*source.task));
  return labels;
}

// All series of the source.
absl::StatusOr<std::vector<storage::SeriesPtr>> SeriesOf(const SelectionWorld& world,
                                                         const StepSource& source) {
  storage::Selector selector;
  selector.job = source.job;
  const std::string task = source.task.has_value() ? absl::StrCat(*source.task) : "";
  for (const auto& [label, value] : {std::pair("task", &task), {"host", &source.host}}) {
    TACHO_ASSIGN_OR_RETURN(Matcher matcher, Matcher::Create(label, Matcher::Op::kEqual, *value));
    selector.matchers.push_back(std::move(matcher));
  }
  auto found = world.store.FindSeries(selector, world.max_series);
  if (absl::IsResourceExhausted(found.status())) return TooManySeries(world.max_series);
  return found;
}

absl::Status TooManyRows(absl::string_view what) {
  return errors::ErrorOf(errors::Failure::kTooLarge,
                         absl::StrCat(kStepMetric, " needs more than ", what,
                                      ": ask for a shorter range or one task"));
}

// Days of rows, for one source and attempt.
class StepReader {
 public:
  StepReader(const SelectionWorld& world, std::vector<storage::SeriesPtr> series, uint32_t attempt,
             uint64_t max_samples)
      : world_(world),
        series_(std::move(series)),
        view_(world.store.OpenView(series_)),
        attempt_(attempt),
        max_samples_(max_samples) {}

  // Fills rows().
  absl::Status ReadDay(const TimeSpan& day) {
    rows_.Clear();
    for (const storage::SeriesPtr& series : series_) {
      TACHO_RETURN_IF_ERROR(world_.control.Check());
      TACHO_RETURN_IF_ERROR(AddSeries(series, day));
      rows_.EndSeries();
    }
    return absl::OkStatus();
  }
  const std::vector<StepRow>& rows() const { return rows_.rows(); }

 private:
  absl::Status AddSeries(const storage::SeriesPtr& series, const TimeSpan& day) {
    storage::ReadOptions options;
    options.begin_ns = day.begin_ns;
    options.end_ns = day.end_ns;
    options.attempt = attempt_;
    options.first_step = storage::kNoStep + 1;  // Rows without a step are left out.
    query::SeriesScan scan(view_->Read(series, options), query::AttemptCondition(), world_.control);
    storage::Chunk chunk;
    for (;;) {
      TACHO_ASSIGN_OR_RETURN(const bool more, scan.Next({}, &chunk));
      if (!more) return absl::OkStatus();
      const storage::SampleColumns& columns = chunk.samples().columns;
      samples_ += columns.size();
      if (samples_ > max_samples_) {
        return TooManyRows(absl::StrCat("query.max_samples = ", max_samples_, " samples"));
      }
      for (size_t i = 0; i < columns.size(); ++i) {
        if (!rows_.Add(columns.times[i], columns.steps[i])) {
          return TooManyRows(absl::StrCat(kMaxStepRowsOfDay, " rows of a day"));
        }
      }
    }
  }

  const SelectionWorld& world_;
  const std::vector<storage::SeriesPtr> series_;
  const std::unique_ptr<storage::ReadView> view_;
  const uint32_t attempt_;
  const uint64_t max_samples_;
  uint64_t samples_ = 0;
  StepRows rows_;
};

// The times of the span at which the attempt has rows; empty if there are none.
absl::StatusOr<TimeSpan> RowsOfAttempt(const SelectionWorld& world, const std::string& job,
                                       uint32_t attempt, const TimeSpan& span) {
  TACHO_ASSIGN_OR_RETURN(const auto attempts, world.store.Attempts(job));
  for (const storage::AttemptInfo& info : attempts) {
    if (info.attempt != attempt || info.extent.first_time_ns > info.extent.last_time_ns) continue;
    const int64_t last = info.extent.last_time_ns;
    return TimeSpan{std::max(span.begin_ns, info.extent.first_time_ns),
                    std::min(span.end_ns, last == INT64_MAX ? INT64_MAX : last + 1)};
  }
  return TimeSpan();
}

}  // namespace

bool AsksForSteps(const std::vector<Matcher>& matchers) {
  bool named = false;
  for (const Matcher& matcher : matchers) {
    if (matcher.label() != kNameLabel) continue;
    if (!matcher.MatchesValue(kStepMetric)) return false;
    named |= matcher.op() == Matcher::Op::kEqual || (matcher.op() == Matcher::Op::kMatches &&
                                                     absl::StrContains(matcher.value(), "tacho_"));
  }
  return named;
}

bool HasSteps(const storage::Store& store, const std::string& job) {
  const auto attempts = store.Attempts(job);
  return attempts.ok() && std::any_of(attempts->begin(), attempts->end(), [](const auto& attempt) {
           return attempt.extent.first_step.has_value();
         });
}

absl::Status VisitStepSeries(const SelectionWorld& world, const ReadQuery& query,
                             const std::string& job, const std::vector<uint32_t>& attempts,
                             absl::FunctionRef<absl::Status(SelectedSeries)> visit) {
  const auto detail = world.store.FindJob(job);
  if (!detail.has_value()) return absl::OkStatus();
  for (const storage::TaskInfo& task : detail->tasks) {
    if (!task.extent.first_step.has_value()) continue;
    if (!KeepsRows(world.membership, job, task.host)) continue;
    const StepSource source = {job, task.task, task.host};
    for (const uint32_t attempt : attempts) {
      LabelList labels = StepLabels(source, attempt);
      if (!MatchesAll(query.matchers, labels)) continue;
      TACHO_RETURN_IF_ERROR(visit(
          {.series = nullptr, .attempt = attempt, .labels = std::move(labels), .steps = source}));
    }
  }
  return absl::OkStatus();
}

absl::Status VisitSteps(const SelectionWorld& world, const SelectedSeries& one,
                        const TimeSpan& span, uint64_t max_samples,
                        absl::FunctionRef<absl::Status(int64_t, int64_t)> visit) {
  TACHO_ASSIGN_OR_RETURN(TimeSpan rest, RowsOfAttempt(world, one.steps->job, one.attempt, span));
  if (rest.begin_ns >= rest.end_ns) return absl::OkStatus();
  TACHO_ASSIGN_OR_RETURN(auto series, SeriesOf(world, *one.steps));
  StepReader reader(world, std::move(series), one.attempt, max_samples);
  while (rest.begin_ns < rest.end_ns) {
    // Unsigned arithmetic, so that all of int64 fits.
    const bool last =
        static_cast<uint64_t>(rest.end_ns) - static_cast<uint64_t>(rest.begin_ns) <= kDayNs;
    const TimeSpan day = {rest.begin_ns, last ? rest.end_ns : rest.begin_ns + int64_t{kDayNs}};
    TACHO_RETURN_IF_ERROR(reader.ReadDay(day));
    for (const auto& [time_ns, step] : reader.rows()) {
      TACHO_RETURN_IF_ERROR(visit(time_ns, step));
    }
    rest.begin_ns = day.end_ns;
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::promread
