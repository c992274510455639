// Follows one ring: hands what its trainer recorded to the agent, each record once over restarts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/source.h"
#include "client/ring/ring_reader.h"

namespace tacho::agent {

// Since the source was made, over all rings.
struct RingStats {
  uint64_t rows = 0;         // Stored.
  uint64_t lost_rows = 0;    // Overwritten before they were read, or damaged.
  uint64_t lost_events = 0;  // The same of events.
  uint64_t refused = 0;      // Pieces that the sink would not take for another reason than room.
  uint64_t rejected_files = 0;
  uint64_t removed_files = 0;
};

class RingTail {
 public:
  // `key` is the checkpoint's; `stats` outlives the tail. Goes on where the checkpoint says, if it
  // is of this very ring.
  RingTail(std::unique_ptr<client::RingReader> reader, std::string key, std::string host,
           const RowSink& sink, RingStats* stats);

  // Hands on one bounded batch; *drained is set if nothing is left and the writer is dead, *more if
  // there is more to read at once.
  //   UNAVAILABLE  the sink has no room, or the file could not be read: later.
  //   DATA_LOSS    the ring is damaged: give it up.
  absl::Status Read(absl::Time now, RowSink* sink, bool* more, bool* drained);

  const client::RingInfo& info() const { return reader_->info(); }

 private:
  v1::Source SourceOf() const;
  std::string Checkpoint(const client::RingCursor& cursor) const;
  absl::Status SendAttributes(RowSink* sink);
  absl::Status SendPiece(const client::RingPiece& piece, RowSink* sink);
  absl::Status SendRows(const client::RingRows& rows, const RowSink::Checkpoint& checkpoint,
                        RowSink* sink);
  absl::Status SendHistogram(const client::RingHistogramState& state,
                             const RowSink::Checkpoint& checkpoint, RowSink* sink);
  absl::Status SendEvent(const client::RingEvent& event, const RowSink::Checkpoint& checkpoint,
                         RowSink* sink);
  absl::Status SendLoss(const client::RingBatch& batch, absl::Time now, RowSink* sink);
  absl::StatusOr<uint32_t> LayoutOf(uint32_t metric_count, bool has_steps, RowSink* sink);
  absl::StatusOr<uint32_t> LayoutOfHistogram(uint32_t histogram, bool has_steps, RowSink* sink);

  const std::unique_ptr<client::RingReader> reader_;
  const std::string key_;
  const std::string host_;
  RingStats* const stats_;
  client::RingCursor cursor_;
  uint64_t attributes_sent_ = 0;
  // By number of metrics and whether rows have steps. Metrics are only ever added at the end.
  std::map<std::pair<uint32_t, bool>, uint32_t> layouts_;
  std::map<std::pair<uint32_t, bool>, uint32_t> histogram_layouts_;  // By histogram and steps.
};

}  // namespace tacho::agent
