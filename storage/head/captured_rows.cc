#include "storage/head/captured_rows.h"

#include <algorithm>
#include <utility>

namespace tacho::storage {

void CapturedRows::Add(SeriesId series, std::vector<HeadColumn> pieces) {
  if (!pieces.empty()) by_series_[series] = std::move(pieces);
}

void CapturedRows::Add(std::vector<CapturedFrame> frames) {
  for (CapturedFrame& frame : frames) {
    const SeriesSource& source = *frame.frame->layout()->series.front()->source;
    by_task_and_host_[{source.task, source.host}].push_back(std::move(frame));
  }
}

std::span<const HeadColumn> CapturedRows::Find(const Series& series) {
  if (const auto found = by_series_.find(series.id); found != by_series_.end()) {
    return found->second;
  }
  found_.clear();
  const auto frames = by_task_and_host_.find({series.source->task, series.source->host});
  if (frames == by_task_and_host_.end()) return found_;
  for (const CapturedFrame& frame : frames->second) {
    const auto column = frame.frame->ColumnOf(series.id);
    if (column) frame.frame->AddColumn(frame.rows, *column, &found_);
  }
  std::sort(found_.begin(), found_.end(),
            [](const HeadColumn& a, const HeadColumn& b) { return a.position < b.position; });
  return found_;
}

}  // namespace tacho::storage
