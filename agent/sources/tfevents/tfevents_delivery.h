// Stores the rows of one chunk of an event file, each exactly once over crashes and refusals.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/tfevents/tfevents_context.h"
#include "client/tfevents/position.h"
#include "client/tfevents/rows.h"

namespace tacho::agent {

// Every tag of a chunk is a batch of its own (or several), and a sink stores a batch and a
// checkpoint together or not at all. So each batch carries a checkpoint that says how many of the
// chunk's rows are stored, and the last one the position behind the chunk.
class TfeventsDelivery {
 public:
  // Rows of one batch: well below what collectors allow.
  static constexpr size_t kMaxRowsPerBatch = 4096;

  enum class Result {
    kDone,     // *position is the end.
    kPaused,   // The deadline came first. Go on with the same chunk: read it again.
    kRefused,  // The sink has no room: the same, but later.
  };

  // `source` without its attempt. Everything outlives the delivery.
  TfeventsDelivery(const v1::Source& source, std::string checkpoint_key, TfeventsContext* context,
                   RowSink* sink);

  // Stores what *position says is missing of the rows, keeping *position true, until everything is
  // stored and *position is `end`. At least one batch is stored, whatever the deadline.
  Result Deliver(const client::TfeventsRowBuilder& rows, const client::TfeventsPosition& end,
                 absl::Time deadline, client::TfeventsPosition* position);

 private:
  struct Group {
    uint32_t attempt = 0;
    const std::string* tag = nullptr;
    const client::TfeventsRows* rows = nullptr;
    bool last = false;  // The last group of the chunk.
  };
  // False: there are too many others.
  bool KnowSeries(const Group& group);
  Result DeliverGroup(const Group& group, absl::Time deadline);
  // Where the file stands once the first `rows` of the group are stored, which ends at its last.
  client::TfeventsPosition After(const Group& group, uint64_t rows) const;
  void Refuse(const Group& group, uint64_t rows, const absl::Status& status);

  const v1::Source& source_;
  const std::string key_;
  TfeventsContext* const context_;
  RowSink* const sink_;
  const client::TfeventsPosition* end_ = nullptr;
  client::TfeventsPosition* position_ = nullptr;
  bool progress_ = false;
};

}  // namespace tacho::agent
