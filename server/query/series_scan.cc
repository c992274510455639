#include "server/query/series_scan.h"

namespace tacho::server {

SeriesScan::SeriesScan(const storage::Store& store, const storage::SeriesPtr& series,
                       const storage::ReadOptions& read, const AttemptCondition& attempts,
                       const QueryControl& control)
    : reader_(store.Read(series, read)), attempts_(attempts), control_(control) {}

absl::StatusOr<bool> SeriesScan::Next(storage::SampleBlock* block) {
  for (;;) {
    if (absl::Status status = control_.Check(); !status.ok()) return status;
    absl::StatusOr<bool> more = reader_->Next(block);
    if (!more.ok() || !*more) return more;
    attempts_.Filter(block);
    if (block->size() > 0) return true;
  }
}

}  // namespace tacho::server
