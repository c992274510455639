// Follows one ring: hands what its trainer recorded to the agent, each record once over restarts,
// and behind it how the trainer ended, if it did not record that itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rings/trainer_process.h"
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

  enum class State : uint8_t {
    kMore,     // There is more to read at once.
    kWaiting,  // Nothing is left at present.
    kEnded,    // Nothing is left, and the ring is closed: TellEnd(). Its file is still in use.
    kDrained,  // Nothing is left, and the writer is dead: TellEnd(), then remove the file.
  };
  // Hands on one bounded batch.
  //   UNAVAILABLE  the sink has no room, or the file could not be read: later.
  //   DATA_LOSS    the ring is damaged: give it up.
  absl::Status Read(absl::Time now, RowSink* sink, State* state);

  // Hands on the event "ended" of a closed ring, or "exited" of one that its writer left open;
  // nothing if the trainer recorded such an event, or this was called before, by whatever agent.
  //   UNAVAILABLE  the sink has no room: later.
  absl::Status TellEnd(absl::Time now, RowSink* sink);

  // Another ring of the attempt goes on, and has the last word: TellEnd() of this one, by whatever
  // agent, has nothing to tell from here on.
  //   UNAVAILABLE  the sink has no room: later.
  absl::Status LeaveEndToAnother(RowSink* sink);

  // Whether the trainer may record more into this ring, as of the last Read().
  bool MayGoOn() const { return !reader_->closed() && WriterAlive(); }
  // Whether TellEnd() has nothing to tell any more.
  bool end_told() const { return told_.end; }

  const client::RingInfo& info() const { return reader_->info(); }

 private:
  // Whether a process still holds the ring.
  bool WriterAlive() const;
  v1::Source SourceOf() const;
  std::string Checkpoint(const client::RingCursor& cursor) const;
  // Whether a dead writer's end can be told: a process that dies loses its ring's lock before the
  // kernel shows how it ended.
  bool Settled();
  v1::Event EndEvent(absl::Time now) const;
  // `store` stores the checkpoint that it is given.
  absl::Status SetEndTold(
      absl::FunctionRef<absl::Status(const RowSink::Checkpoint& checkpoint)> store);
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
  const TrainerProcess process_;
  client::RingCursor cursor_;
  uint64_t attributes_sent_ = 0;

  // The position up to which rows were handed on; part of the checkpoint.
  struct Told {
    int64_t last_ns = 0;  // The newest time of a row or event.
    bool end = false;  // The end needs no event: the last of them was one, or another ring has it.
  };
  static Told After(const client::RingPiece& piece, Told told);
  Told told_;
  bool seen_alive_ = false;
  int looks_at_dying_ = 0;
  // By number of metrics and whether rows have steps. Metrics are only ever added at the end.
  std::map<std::pair<uint32_t, bool>, uint32_t> layouts_;
  std::map<std::pair<uint32_t, bool>, uint32_t> histogram_layouts_;  // By histogram and steps.
};

}  // namespace tacho::agent
