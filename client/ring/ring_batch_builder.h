// Collects records into a batch, and counts the missing ones. Internal to the reader.
#pragma once

#include <cstdint>

#include "client/ring/ring_reader.h"
#include "client/ring/ring_records.h"

namespace tacho::client {

class RingBatchBuilder {
 public:
  // Skips records before `from`.
  RingBatchBuilder(const RingCursor& from, const RingReadLimits& limits);

  bool full() const { return taken_ >= limits_.max_rows; }
  // Whether a record contradicted `from`, which then belongs to another ring.
  bool contradicted() const { return contradicted_; }

  // Takes a row or an event. A row that needs more than `known_metrics` only counts as lost. False
  // if the record is damaged; then it takes nothing.
  bool Add(const RingRecord& record, size_t known_metrics);
  void AddHistogramState(const RingRecord& record);

  RingBatch Build(bool at_end) &&;

 private:
  // Counts what is missing before the record. False if the record must not be added.
  bool Advance(const RecordHeader& header);
  void AddRow(const RingRecord& record);
  RingRows& RowsFor(const RingRecord& record);

  const RingReadLimits limits_;
  RingBatch batch_;
  size_t taken_ = 0;  // Rows and events.
  bool contradicted_ = false;
};

}  // namespace tacho::client
