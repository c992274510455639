#include "client/ring/ring_batch_builder.h"

#include <cstring>
#include <optional>
#include <utility>

#include "proto/base/check.h"

namespace tacho::client {

RingBatchBuilder::RingBatchBuilder(const RingCursor& from, const RingReadLimits& limits)
    : limits_(limits) {
  TACHO_CHECK(limits.max_rows > 0 && limits.max_rows_per_piece > 0);
  batch_.end = from;
}

bool RingBatchBuilder::Advance(const RecordHeader& header) {
  if (header.number < batch_.end.record) return false;
  const uint64_t missing = header.number - batch_.end.record;
  const uint64_t missing_rows = header.row - batch_.end.row;
  if (header.row < batch_.end.row || missing_rows > missing) {
    contradicted_ = true;
    return false;
  }
  batch_.lost_rows += missing_rows;
  batch_.lost_events += missing - missing_rows;
  batch_.end = {header.number, header.row};
  return true;
}

bool RingBatchBuilder::Add(const RingRecord& record, size_t known_metrics) {
  if (record.IsRow()) {
    if (!Advance(record.header)) return true;
    batch_.end = {record.header.number + 1, record.header.row + 1};
    if (record.header.count > known_metrics) {
      ++batch_.lost_rows;
    } else {
      AddRow(record);
    }
    return true;
  }
  std::optional<RingEvent> event = ParseEvent(record);
  if (!event.has_value()) return false;
  if (!Advance(record.header)) return true;
  ++batch_.end.record;
  batch_.pieces.push_back({batch_.end, *std::move(event)});
  ++taken_;
  return true;
}

void RingBatchBuilder::AddHistogramState(const RingRecord& record) {
  TACHO_CHECK(record.IsHistogramState());
  // A state has no number of its own. One that was delivered may come again, which is harmless.
  if (record.header.number < batch_.end.record || !Advance(record.header)) return;
  batch_.pieces.push_back({batch_.end, ParseHistogramState(record)});
  ++taken_;
}

void RingBatchBuilder::AddRow(const RingRecord& record) {
  RingRows& rows = RowsFor(record);
  rows.times_unix_ns.push_back(record.header.time_unix_ns);
  if (rows.has_steps) rows.steps.push_back(record.header.step);
  const size_t before = rows.values.size();
  TACHO_CHECK(record.payload.size() == rows.metric_count * sizeof(double));
  rows.values.resize(before + rows.metric_count);
  std::memcpy(&rows.values[before], record.payload.data(), record.payload.size());
  batch_.pieces.back().end = batch_.end;
  ++taken_;
}

RingRows& RingBatchBuilder::RowsFor(const RingRecord& record) {
  if (!batch_.pieces.empty()) {
    auto* rows = std::get_if<RingRows>(&batch_.pieces.back().content);
    if (rows != nullptr && rows->metric_count == record.header.count &&
        rows->has_steps == record.HasStep() &&
        rows->times_unix_ns.size() < limits_.max_rows_per_piece) {
      return *rows;
    }
  }
  RingRows fresh;
  fresh.metric_count = record.header.count;
  fresh.has_steps = record.HasStep();
  batch_.pieces.push_back({batch_.end, std::move(fresh)});
  return std::get<RingRows>(batch_.pieces.back().content);
}

RingBatch RingBatchBuilder::Build(bool at_end) && {
  batch_.at_end = at_end;
  return std::move(batch_);
}

}  // namespace tacho::client
