#include "server/query/series_scan.h"

#include <utility>

namespace tacho::server {

SeriesScan::SeriesScan(std::unique_ptr<storage::SeriesReader> reader,
                       const AttemptCondition& attempts, const QueryControl& control)
    : reader_(std::move(reader)), attempts_(attempts), control_(control) {}

absl::StatusOr<bool> SeriesScan::Next(storage::SampleBlock* block) {
  for (;;) {
    if (absl::Status status = control_.Check(); !status.ok()) return status;
    absl::StatusOr<bool> more = reader_->Next(block);
    if (!more.ok() || !*more) return more;
    attempts_.Filter(block);
    if (block->size() > 0) return true;
  }
}

absl::StatusOr<bool> SeriesScan::NextSummary(
    absl::FunctionRef<bool(const storage::SampleSummary&)> fits, storage::SampleSummary* summary) {
  if (absl::Status status = control_.Check(); !status.ok()) return status;
  return reader_->NextSummary(
      [&](const storage::SampleSummary& offered) {
        return attempts_.Allows(offered.attempt) && fits(offered);
      },
      summary);
}

}  // namespace tacho::server
