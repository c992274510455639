#include "storage/columns/stored_series_reader.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "proto/base/status_macros.h"
#include "storage/codec/keys.h"
#include "storage/model/job.h"

namespace tacho::storage {
namespace {

// A column is of a day, and the day of its first time.
size_t FirstPartition(const std::vector<PartitionPtr>& partitions, int64_t begin_ns) {
  const auto found = std::lower_bound(
      partitions.begin(), partitions.end(), DayOf(begin_ns),
      [](const PartitionPtr& partition, int64_t day) { return partition->day() < day; });
  return static_cast<size_t>(found - partitions.begin());
}

void BoundSteps(const std::vector<int64_t>& steps, SampleSummary* summary) {
  Extent extent;
  for (const int64_t step : steps) extent.IncludeStep(step);
  summary->lowest_step = extent.first_step.value_or(kNoStep);
  summary->highest_step = extent.last_step.value_or(kNoStep);
}

// Of rows [begin, end).
void ShowSteps(const FrameTimes& times, size_t begin, size_t end, SampleView* view) {
  view->step_order = times.step_order;
  const std::vector<uint32_t>& ends = times.step_ends;
  if (ends.empty() || begin == end) return;
  const auto from = std::lower_bound(ends.begin(), ends.end(), begin);
  const auto to = std::lower_bound(from, ends.end(), end - 1);
  view->step_ends = std::span(from, to);
  view->step_ends_from = static_cast<uint32_t>(begin);
}

void Copy(const SampleColumns& columns, uint32_t attempt, SampleBlock* block) {
  block->times.assign(columns.times.begin(), columns.times.end());
  block->steps.assign(columns.steps.begin(), columns.steps.end());
  block->attempts.assign(columns.size(), attempt);
  block->values.assign(columns.values.begin(), columns.values.end());
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
      if (options_.end_ns != INT64_MAX && partitions[partition_]->day() > DayOf(options_.end_ns)) {
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

SampleRun StoredSeriesReader::MakeRun(const DecodedColumn& column) const {
  const TimeColumn& time = column.times->column;
  const auto [begin, end] = RowsInRange(column);
  SampleBlock samples;
  Copy(SampleColumns{time.times, time.steps, column.values}.Rows(begin, end), time.attempt,
       &samples);
  return {front().position, std::move(samples), options_};
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

absl::StatusOr<bool> StoredSeriesReader::Next(SampleBlock* block) {
  for (;;) {
    SampleView view;
    TACHO_ASSIGN_OR_RETURN(const auto any, NextView(&view));
    if (any) {
      Copy(view.columns, view.attempt, block);
      return true;
    }
    // Whatever comes before the next column begins can be merged now.
    const bool columns_left = columns_ != nullptr;
    if (TakeMerged(&runs_, columns_left ? front().first_time_ns : INT64_MAX, block)) return true;
    if (!columns_left) return false;
    TACHO_ASSIGN_OR_RETURN(const auto column, DecodeFront());
    SampleRun run = MakeRun(*column);
    if (!run.empty()) runs_.push_back(std::move(run));
    PassFront();
  }
}

absl::StatusOr<bool> StoredSeriesReader::NextView(SampleView* view) {
  OpenRuns();
  for (;; PassFront()) {
    TACHO_ASSIGN_OR_RETURN(const auto any, FindFront());
    if (!any || !FrontIsAlone()) return false;
    TACHO_ASSIGN_OR_RETURN(const auto column, DecodeFront());
    if (!Show(column, view)) return false;
    if (view->size() == 0) continue;
    PassFront();
    return true;
  }
}

absl::StatusOr<std::optional<SampleSummary>> StoredSeriesReader::SummariseFront() const {
  const ColumnInfo& column = front();
  if (options_.first_step || options_.last_step || column.first_time_ns < options_.begin_ns ||
      !IsBefore(column.last_time_ns, options_.end_ns)) {
    return std::nullopt;
  }
  const ColumnStats& stats = column.stats;
  // Rows without a value leave open when the first and the last came.
  if (stats.count != column.rows || stats.non_finite > 0 || !std::isfinite(stats.sum)) {
    return std::nullopt;
  }
  absl::StatusOr<TimeColumnEnds> ends;
  if (const DecodedColumnPtr known = columns_->Decoded(index_)) {
    const TimeColumn& time = known->times->column;
    ends = TimeColumnEnds{column.rows, time.attempt, time.steps.front(), time.steps.back()};
  } else {
    ends = view_->FindTimeColumnEnds(partition_, *series_, column);
  }
  if (!ends.ok()) return ends.status();
  if (options_.attempt && ends->attempt != *options_.attempt) return std::nullopt;
  SampleSummary summary;
  if (options_.bound_steps) {
    TACHO_ASSIGN_OR_RETURN(const auto times, view_->FindTimes(partition_, *series_, column));
    BoundSteps(times->column.steps, &summary);
  }
  summary.attempt = ends->attempt;
  summary.first_time_ns = column.first_time_ns;
  summary.last_time_ns = column.last_time_ns;
  summary.first_step = ends->first_step;
  summary.last_step = ends->last_step;
  summary.first = stats.first;
  summary.last = stats.last;
  summary.count = stats.count;
  summary.min = stats.min;
  summary.max = stats.max;
  summary.sum = stats.sum;
  return summary;
}

absl::StatusOr<bool> StoredSeriesReader::NextSummary(
    absl::FunctionRef<bool(const SampleSummary&)> fits, SampleSummary* summary) {
  OpenRuns();
  TACHO_ASSIGN_OR_RETURN(const auto any, FindFront());
  if (!any || !FrontIsAlone()) return false;
  TACHO_ASSIGN_OR_RETURN(const auto summarised, SummariseFront());
  if (!summarised || !fits(*summarised)) return false;
  *summary = *summarised;
  PassFront();
  return true;
}

absl::StatusOr<bool> StoredSeriesReader::NextBounds(SampleBounds* bounds) {
  OpenRuns();
  for (;; PassFront()) {
    TACHO_ASSIGN_OR_RETURN(const auto any, FindFront());
    if (!any || !FrontIsAlone()) return false;
    const DecodedColumnPtr known = columns_->Decoded(index_);
    if (known == nullptr || !known->whole || options_.first_step || options_.last_step) break;
    const TimeColumn& time = known->times->column;
    const auto [begin, end] = RowsInRange(*known);
    if (begin == end || (options_.attempt && time.attempt != *options_.attempt)) continue;
    *bounds = {time.attempt, time.times[begin], time.times[end - 1]};
    PassFront();
    return true;
  }
  TACHO_ASSIGN_OR_RETURN(const auto summarised, SummariseFront());
  if (!summarised) return false;
  *bounds = {summarised->attempt, summarised->first_time_ns, summarised->last_time_ns};
  PassFront();
  return true;
}

}  // namespace tacho::storage
