#include "server/query/read/series_scan.h"

#include <utility>

#include "proto/base/status_macros.h"

namespace tacho::server::query {

SeriesScan::SeriesScan(std::unique_ptr<storage::SeriesReader> reader,
                       const AttemptCondition& attempts, const QueryControl& control,
                       v1::CounterFunction counter)
    : reader_(std::move(reader)), attempts_(attempts), control_(control) {
  if (counter != v1::COUNTER_FUNCTION_UNSPECIFIED) growth_.emplace(counter);
}

absl::StatusOr<bool> SeriesScan::Next(storage::SampleBlock* block) {
  for (;;) {
    TACHO_RETURN_IF_ERROR(control_.Check());
    absl::StatusOr<bool> more = reader_->Next(block);
    if (!more.ok()) return more;
    if (!*more) {
      if (!growth_.has_value()) return false;
      growth_->Finish(block);
      return block->size() > 0;
    }
    attempts_.Filter(block);
    if (growth_.has_value()) growth_->Apply(block);
    if (block->size() > 0) return true;
  }
}

absl::StatusOr<bool> SeriesScan::NextSummary(
    absl::FunctionRef<bool(const storage::SampleSummary&)> fits, storage::SampleSummary* summary) {
  if (growth_.has_value()) return false;  // Where a counter was reset is in its samples.
  return Checked(reader_->NextSummary(
      [&](const storage::SampleSummary& offered) {
        return attempts_.AllowsAll(offered) && fits(offered);
      },
      summary));
}

absl::StatusOr<bool> SeriesScan::NextView(storage::SampleView* view) {
  *view = {};
  // Growth changes samples, and a timeline leaves out some in the middle of a column.
  if (growth_.has_value() || attempts_.needs_step_bounds()) return false;
  for (;;) {
    absl::StatusOr<bool> more = Checked(reader_->NextView(view));
    if (more.ok() && *more && attempts_.Allows(view->attempt)) return true;
    *view = {};  // Also of what is not allowed.
    if (!more.ok() || !*more) return more;
  }
}

absl::StatusOr<bool> SeriesScan::NextBounds(storage::SampleBounds* bounds) {
  // Growth leaves out samples, and so may a timeline in the middle of a column.
  if (growth_.has_value() || attempts_.needs_step_bounds()) return false;
  for (;;) {
    absl::StatusOr<bool> more = Checked(reader_->NextBounds(bounds));
    if (!more.ok() || !*more || attempts_.Allows(bounds->attempt)) return more;
  }
}

absl::StatusOr<bool> SeriesScan::Checked(absl::StatusOr<bool> more) const {
  if (!more.ok() || !*more) return more;
  TACHO_RETURN_IF_ERROR(control_.Check());
  return true;
}

absl::Status SeriesScan::ForEachBounds(absl::FunctionRef<void(int64_t, int64_t)> visit,
                                       storage::SampleBlock* block) {
  storage::SampleBounds bounds;
  for (;;) {
    absl::StatusOr<bool> more = NextBounds(&bounds);
    if (!more.ok()) return more.status();
    if (*more) {
      visit(bounds.first_time_ns, bounds.last_time_ns);
      continue;
    }
    more = Next(block);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
    visit(block->times.front(), block->times.back());
  }
}

absl::StatusOr<bool> HasSample(const storage::Store& store, const storage::SeriesPtr& series,
                               const AttemptCondition& attempts, const QueryControl& control) {
  if (attempts.any()) return true;
  storage::ReadOptions read;
  read.attempt = attempts.only();
  storage::SampleBlock block;
  return SeriesScan(store.Read(series, read), attempts, control).Next(&block);
}

}  // namespace tacho::server::query
