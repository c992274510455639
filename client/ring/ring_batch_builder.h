// Collects records into a batch, and counts those that are missing. Internal to the reader.
#pragma once

#include <cstdint>

#include "client/ring/ring_reader.h"
#include "client/ring/ring_records.h"

namespace tacho::client {

class RingBatchBuilder {
 public:
  // Records before `from` are passed over.
  RingBatchBuilder(const RingCursor& from, const RingReadLimits& limits);

  bool full() const { return taken_ >= limits_.max_rows; }
  // Whether a record contradicted `from`, which is then of another ring.
  bool contradicted() const { return contradicted_; }

  // Takes a row or an event; of a row that needs more than `known_metrics`, only its loss. False if
  // the record is damaged; nothing is taken then.
  bool Add(const RingRecord& record, size_t known_metrics);
  void AddHistogramState(const RingRecord& record);

  RingBatch Build(bool at_end) &&;

 private:
  // Counts what is missing before the record. False if it must not be added.
  bool Advance(const RecordHeader& header);
  void AddRow(const RingRecord& record);
  RingRows& RowsFor(const RingRecord& record);

  const RingReadLimits limits_;
  RingBatch batch_;
  size_t taken_ = 0;  // Rows and events.
  bool contradicted_ = false;
};

}  // namespace tacho::client
