// A reader walks the columns of its series day by day. A column that stands alone is shown as it
// lies, or by its header; only where columns and open rows overlap in time are samples copied and
// merged.
#include "storage/columns/stored_series_reader.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "storage/codec/keys.h"
#include "storage/model/job.h"

namespace tacho::storage {
namespace {

// A column is of a day, and the day of its first time.
size_t FirstPartition(const std::vector<StoredDay>& partitions, int64_t begin_ns) {
  const auto found = std::lower_bound(
      partitions.begin(), partitions.end(), DayOf(begin_ns),
      [](const StoredDay& partition, int64_t day) { return partition.day() < day; });
  return static_cast<size_t>(found - partitions.begin());
}

void BoundSteps(const std::vector<int64_t>& steps, SampleSummary* summary) {
  Extent extent;
  for (const int64_t step : steps) extent.IncludeStep(step);
  summary->lowest_step = extent.first_step.value_or(kNoStep);
  summary->highest_step = extent.last_step.value_or(kNoStep);
}

// Shows the steps of rows [begin, end).
void ShowSteps(const FrameTimes& times, size_t begin, size_t end, SampleView* view) {
  view->step_order = times.step_order;
  const std::vector<uint32_t>& ends = times.step_ends;
  if (ends.empty() || begin == end) return;
  const auto from = std::lower_bound(ends.begin(), ends.end(), begin);
  const auto to = std::lower_bound(from, ends.end(), end - 1);
  view->step_ends = std::span(from, to);
  view->step_ends_from = static_cast<uint32_t>(begin);
}

// Samples that are to be merged are copied.
SampleBlock Copy(const SampleColumns& columns, uint32_t attempt) {
  SampleBlock block;
  block.times.assign(columns.times.begin(), columns.times.end());
  block.steps.assign(columns.steps.begin(), columns.steps.end());
  block.attempts.assign(columns.size(), attempt);
  block.values.assign(columns.values.begin(), columns.values.end());
  return block;
}

// Adds what was found, if anything was.
void Include(const std::optional<SampleEnds>& found, std::optional<SampleEnds>* ends) {
  if (!found) return;
  if (*ends) {
    (*ends)->Include(*found);
  } else {
    *ends = found;
  }
}

bool IsBefore(int64_t time_ns, int64_t end_ns) { return end_ns == INT64_MAX || time_ns < end_ns; }

}  // namespace

StoredSeriesReader::StoredSeriesReader(StoredView* view, SeriesPtr series,
                                       const ReadOptions& options)
    : view_(view),
      series_(std::move(series)),
      options_(options),
      partition_(FirstPartition(view->partitions(), options.begin_ns)) {}

void StoredSeriesReader::OpenRuns() {
  if (std::exchange(opened_, true)) return;
  for (const HeadColumn& piece : view_->FindOpenRows(*series_)) {
    SampleRun run(piece.position, piece.Decode(options_.begin_ns, options_.end_ns), options_);
    if (!run.empty()) runs_.push_back(std::move(run));
  }
}

absl::StatusOr<bool> StoredSeriesReader::FindFront() {
  const auto& partitions = view_->partitions();
  for (; partition_ < partitions.size(); ++partition_, columns_ = nullptr) {
    if (columns_ == nullptr) {
      if (options_.end_ns != INT64_MAX && partitions[partition_].day() > DayOf(options_.end_ns)) {
        break;
      }
      TACHO_ASSIGN_OR_RETURN(auto columns,
                             view_->FindColumns(partition_, *series_, options_, &met_));
      columns_ = std::move(columns);
      index_ = 0;
    }
    const std::vector<ColumnInfo>& all = columns_->columns();
    while (index_ < all.size() && all[index_].last_time_ns < options_.begin_ns) ++index_;
    if (index_ == all.size()) continue;
    // Columns of a series ascend with time: nothing later in this day or after it is wanted.
    if (!IsBefore(front().first_time_ns, options_.end_ns)) break;
    return true;
  }
  columns_ = nullptr;
  partition_ = partitions.size();
  return false;
}

bool StoredSeriesReader::FrontIsAlone() const {
  const int64_t last_ns = front().last_time_ns;
  for (const SampleRun& run : runs_) {
    if (run.next_time_ns() <= last_ns) return false;
  }
  const std::vector<ColumnInfo>& all = columns_->columns();
  for (size_t i = index_ + 1; i < all.size() && all[i].first_time_ns <= last_ns; ++i) {
    if (!IsBefore(all[i].first_time_ns, options_.end_ns)) break;
    if (all[i].last_time_ns >= options_.begin_ns) return false;
  }
  return true;
}

std::pair<size_t, size_t> StoredSeriesReader::RowsInRange(const DecodedColumn& column) const {
  // Rows of a frame ascend in time.
  const std::vector<int64_t>& times = column.times->column.times;
  TACHO_CHECK(!times.empty());
  const auto row_of = [&](int64_t time_ns) {
    return static_cast<size_t>(std::lower_bound(times.begin(), times.end(), time_ns) -
                               times.begin());
  };
  const size_t begin = times.front() >= options_.begin_ns ? 0 : row_of(options_.begin_ns);
  const size_t end =
      IsBefore(times.back(), options_.end_ns) ? times.size() : row_of(options_.end_ns);
  return {begin, std::max(begin, end)};
}

bool StoredSeriesReader::StepsAreInRange(const FrameTimes& times) const {
  if (!options_.first_step && !options_.last_step) return true;
  // Rows without a step are left out.
  return times.lowest_step >= std::max(options_.first_step.value_or(INT64_MIN), kNoStep + 1) &&
         times.highest_step <= options_.last_step.value_or(INT64_MAX);
}

bool StoredSeriesReader::Show(const DecodedColumnPtr& column, SampleView* view) const {
  const TimeColumn& time = column->times->column;
  if (!column->whole || !column->times->ascend || !StepsAreInRange(*column->times)) return false;
  const bool wanted = !options_.attempt || time.attempt == *options_.attempt;
  const auto [begin, end] = wanted ? RowsInRange(*column) : std::pair<size_t, size_t>();
  const SampleColumns all = {time.times, time.steps, column->values};
  *view = {.attempt = time.attempt, .columns = all.Rows(begin, end), .owner = column};
  ShowSteps(*column->times, begin, end, view);
  return true;
}

SampleRun StoredSeriesReader::MakeRun(FramePosition position, const DecodedColumn& column) const {
  const TimeColumn& time = column.times->column;
  const auto [begin, end] = RowsInRange(column);
  const SampleColumns all = {time.times, time.steps, column.values};
  return {position, Copy(all.Rows(begin, end), time.attempt), options_};
}

absl::StatusOr<DecodedColumnPtr> StoredSeriesReader::DecodeFront() {
  if (decoded_ == nullptr) {
    TACHO_ASSIGN_OR_RETURN(
        auto column, view_->FindDecoded(partition_, *series_, columns_, index_, options_, met_));
    decoded_ = std::move(column);
  }
  return decoded_;
}

void StoredSeriesReader::PassFront() {
  ++index_;
  decoded_ = nullptr;
}

absl::StatusOr<bool> StoredSeriesReader::Next(const Want& want, Chunk* chunk) {
  OpenRuns();
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const bool columns_left, FindFront());
    if (columns_left && FrontIsAlone()) {
      TACHO_ASSIGN_OR_RETURN(const auto shown, ShowFront(want, chunk));
      if (shown == Shown::kSome) return true;
      if (shown == Shown::kNothing) continue;
    }
    // Whatever comes before the next column begins can be merged now.
    if (TakeMerged(&runs_, columns_left ? front().first_time_ns : INT64_MAX, chunk->block())) {
      chunk->ShowBlock();
      return true;
    }
    if (!columns_left) return false;
    TACHO_ASSIGN_OR_RETURN(const auto column, DecodeFront());
    SampleRun run = MakeRun(front().position, *column);
    if (!run.empty()) runs_.push_back(std::move(run));
    PassFront();
  }
}

absl::StatusOr<StoredSeriesReader::Shown> StoredSeriesReader::ShowFront(const Want& want,
                                                                        Chunk* chunk) {
  if (want.summary) {
    TACHO_ASSIGN_OR_RETURN(const auto summary, SummariseFront(want.step_bounds));
    if (summary && want.summary(*summary)) {
      chunk->Set(*summary);
      PassFront();
      return Shown::kSome;
    }
  }
  TACHO_ASSIGN_OR_RETURN(const auto column, DecodeFront());
  SampleView view;
  if (!Show(column, &view)) return Shown::kNotAsItIs;
  PassFront();
  if (view.size() == 0) return Shown::kNothing;
  chunk->Set(std::move(view));
  return Shown::kSome;
}

bool StoredSeriesReader::IsWholeInRange(const ColumnInfo& column) const {
  return !options_.first_step && !options_.last_step && column.first_time_ns >= options_.begin_ns &&
         IsBefore(column.last_time_ns, options_.end_ns);
}

absl::StatusOr<TimeColumnEnds> StoredSeriesReader::TimeEndsOf(size_t partition,
                                                              const SeriesColumns& columns,
                                                              size_t index) const {
  const ColumnInfo& column = columns.columns()[index];
  const DecodedColumnPtr known = columns.Decoded(index);
  if (known == nullptr) return view_->FindTimeColumnEnds(partition, *series_, column);
  const TimeColumn& time = known->times->column;
  return TimeColumnEnds{column.rows, time.attempt, time.steps.front(), time.steps.back()};
}

absl::StatusOr<std::optional<SampleSummary>> StoredSeriesReader::SummariseFront(
    bool step_bounds) const {
  const ColumnInfo& column = front();
  const ColumnStats& stats = column.stats;
  // Rows without a value leave open when the first and the last came.
  if (!IsWholeInRange(column) || stats.count != column.rows || stats.non_finite > 0 ||
      !std::isfinite(stats.sum)) {
    return std::nullopt;
  }
  TACHO_ASSIGN_OR_RETURN(const auto ends, TimeEndsOf(partition_, *columns_, index_));
  if (options_.attempt && ends.attempt != *options_.attempt) return std::nullopt;
  SampleSummary summary;
  if (step_bounds) {
    TACHO_ASSIGN_OR_RETURN(const auto times, view_->FindTimes(partition_, *series_, column));
    BoundSteps(times->column.steps, &summary);
  }
  summary.attempt = ends.attempt;
  summary.first_time_ns = column.first_time_ns;
  summary.last_time_ns = column.last_time_ns;
  summary.first_step = ends.first_step;
  summary.last_step = ends.last_step;
  summary.first = stats.first;
  summary.last = stats.last;
  summary.count = stats.count;
  summary.min = stats.min;
  summary.max = stats.max;
  summary.sum = stats.sum;
  return summary;
}

bool StoredSeriesReader::ReachesIntoRange(const ColumnInfo& column) const {
  return column.last_time_ns >= options_.begin_ns &&
         IsBefore(column.first_time_ns, options_.end_ns);
}

absl::StatusOr<std::pair<SeriesColumnsPtr, size_t>> StoredSeriesReader::ColumnsOf(
    size_t partition) {
  if (partition == partition_) return std::make_pair(columns_, index_);
  StoredView::MetBytes met;
  TACHO_ASSIGN_OR_RETURN(auto columns, view_->FindColumns(partition, *series_, options_, &met));
  return std::make_pair(std::move(columns), size_t{0});
}

absl::StatusOr<std::optional<SampleEnds>> StoredSeriesReader::EndsOf(
    size_t partition, const SeriesColumnsPtr& columns, size_t index) {
  const ColumnInfo& column = columns->columns()[index];
  if (IsWholeInRange(column) && column.stats.count == column.rows) {
    TACHO_ASSIGN_OR_RETURN(const auto times, TimeEndsOf(partition, *columns, index));
    if (options_.attempt && times.attempt != *options_.attempt) return std::nullopt;
    return SampleEnds{.first = {column.first_time_ns, times.first_step, times.attempt},
                      .last = {column.last_time_ns, times.last_step, times.attempt}};
  }
  absl::StatusOr<DecodedColumnPtr> decoded;
  if (columns == columns_ && index == index_) {
    decoded = DecodeFront();
  } else {
    decoded = view_->FindDecoded(partition, *series_, columns, index, options_, {});
  }
  if (!decoded.ok()) return decoded.status();
  SampleView view;
  if (!Show(*decoded, &view)) {
    const SampleRun run = MakeRun(column.position, **decoded);
    if (run.empty()) return std::nullopt;
    return run.ends();
  }
  if (view.size() == 0) return std::nullopt;
  const SampleColumns& rows = view.columns;
  return SampleEnds{.first = {rows.times.front(), rows.steps.front(), view.attempt},
                    .last = {rows.times.back(), rows.steps.back(), view.attempt}};
}

absl::StatusOr<bool> StoredSeriesReader::FindFirst(size_t partition,
                                                   std::optional<SampleEnds>* ends) {
  TACHO_ASSIGN_OR_RETURN(const auto left, ColumnsOf(partition));
  const auto& [columns, begin] = left;
  const std::vector<ColumnInfo>& all = columns->columns();
  for (size_t i = begin; i < all.size(); ++i) {
    // They ascend by their first time.
    if (*ends && (*ends)->first.time_ns <= all[i].first_time_ns) break;
    if (!ReachesIntoRange(all[i])) continue;
    TACHO_ASSIGN_OR_RETURN(const auto found, EndsOf(partition, columns, i));
    Include(found, ends);
  }
  return *ends && DayOf((*ends)->first.time_ns) <= view_->partitions()[partition].day();
}

absl::StatusOr<bool> StoredSeriesReader::FindLast(size_t partition,
                                                  std::optional<SampleEnds>* ends) {
  TACHO_ASSIGN_OR_RETURN(const auto left, ColumnsOf(partition));
  const auto& [columns, begin] = left;
  const std::vector<ColumnInfo>& all = columns->columns();
  std::vector<size_t> newest_first;
  for (size_t i = begin; i < all.size(); ++i) {
    if (ReachesIntoRange(all[i])) newest_first.push_back(i);
  }
  std::sort(newest_first.begin(), newest_first.end(),
            [&](size_t a, size_t b) { return all[a].last_time_ns > all[b].last_time_ns; });
  for (const size_t i : newest_first) {
    if (*ends && (*ends)->last.time_ns >= all[i].last_time_ns) break;
    TACHO_ASSIGN_OR_RETURN(const auto found, EndsOf(partition, columns, i));
    Include(found, ends);
  }
  return *ends && DayOf((*ends)->last.time_ns) >= view_->partitions()[partition].day();
}

absl::StatusOr<std::optional<SampleEnds>> StoredSeriesReader::FindEnds() {
  OpenRuns();
  std::optional<SampleEnds> ends;
  for (const SampleRun& run : runs_) Include(run.ends(), &ends);
  TACHO_ASSIGN_OR_RETURN(const bool columns_left, FindFront());
  if (!columns_left) return ends;
  const auto& partitions = view_->partitions();
  size_t end = partitions.size();
  while (options_.end_ns != INT64_MAX && partitions[end - 1].day() > DayOf(options_.end_ns)) --end;
  for (size_t partition = partition_; partition < end; ++partition) {
    TACHO_ASSIGN_OR_RETURN(const bool found, FindFirst(partition, &ends));
    if (found) break;
  }
  if (!ends) return ends;  // All columns have been looked at.
  for (size_t partition = end; partition-- > partition_;) {
    TACHO_ASSIGN_OR_RETURN(const bool found, FindLast(partition, &ends));
    if (found) break;
  }
  return ends;
}

}  // namespace tacho::storage
