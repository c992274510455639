// The interface of everything that an agent samples.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// Where sources put what they saw. A source uses it from the thread that polls it, in Poll() alone;
// calls of several sources come one after the other. At the agent's end a source that does not
// return is left behind, and every call of it is then answered with CANCELLED.
class RowSink {
 public:
  virtual ~RowSink() = default;

  // Finds or makes the layout that is equal to `layout` (whose id is ignored) and returns its
  // handle, which stays good for the life of the sink.
  virtual absl::StatusOr<uint32_t> DefineLayout(const v1::Layout& layout) = 0;

  // How far the source has got. Stored together with the rows, all or nothing, so that after a
  // crash it reads on exactly where the spool ends. Keys begin with the source's name and a slash.
  struct Checkpoint {
    std::string key;    // Empty: none.
    std::string value;  // Empty: forget the key.
  };

  // Spools some rows as one batch. `steps` has one entry a row, or none if the layout has no steps;
  // `values` is row by row.
  //   UNAVAILABLE  the spool refused (disk full?); nothing was taken. Try again at the next poll.
  virtual absl::Status AppendRows(uint32_t layout, std::span<const int64_t> times_unix_ns,
                                  std::span<const int64_t> steps, std::span<const double> values,
                                  const Checkpoint& checkpoint) = 0;
  // The event's sequence is ignored.
  virtual absl::Status AppendEvent(const v1::Event& event, const Checkpoint& checkpoint) = 0;
  virtual absl::Status AppendAttributes(const v1::Attributes& attributes,
                                        const Checkpoint& checkpoint) = 0;
  virtual absl::Status WriteCheckpoint(const Checkpoint& checkpoint) = 0;

  // The value last stored under `key`; empty if there is none.
  virtual std::string ReadCheckpoint(absl::string_view key) const = 0;
};

// One kind of thing to sample. Every source has a thread of its own, which is the only one that
// calls it: what it waits for delays no other source. State that two sources share needs a lock.
class Source {
 public:
  virtual ~Source() = default;

  // A short lower-case word, unique in the agent: "host", "tfevents", "rings".
  virtual absl::string_view name() const = 0;

  // Does what is due at `now`, giving what it finds to `sink`, and returns when it wants to be
  // called next; agent/sources/rows/cadence.h says when a sampling source should. It may wait for
  // what it asks, each time with a deadline: the agent's end waits for a poll for two seconds
  // (Sampler::Stop()), and one that takes a minute counts as failing. A source with more to read
  // than about 100 ms worth returns `now` and goes on in its next turn. Trouble with one file or
  // value is counted and logged by the source (once a minute for each kind) and never ends the
  // others.
  virtual absl::Time Poll(absl::Time now, RowSink* sink) = 0;

  // Asked after each Poll(): why the source as a whole gives nothing at present, in one line for
  // the operator that says what is wrong, where, and what to do. OK also where only parts are
  // missing. While it is not OK, polls are at least 1 s, 2 s, 4 s, ... a minute apart; the code and
  // the text come with the agent's own metrics and events (agent/sources/self/self_source.h).
  virtual absl::Status status() const { return absl::OkStatus(); }

  // Asked likewise: rows that were there to be read, and were overwritten or damaged before this
  // source came to them; since it was made.
  virtual uint64_t lost_rows() const { return 0; }
};

}  // namespace tacho::agent
