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

// Where sources put what they saw. Used from the thread that polls the sources.
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

// One kind of thing to sample. Used from one thread.
class Source {
 public:
  virtual ~Source() = default;

  // A short lower-case word, unique in the agent: "host", "tfevents", "rings".
  virtual absl::string_view name() const = 0;

  // Does what is due at `now`, giving what it finds to `sink`, and returns when it wants to be
  // called next. It must return within about 100 ms: a source with more to read returns `now` and
  // goes on in its next turn. Trouble with one file or value is counted and logged by the source
  // (once a minute for each kind) and never ends the others.
  virtual absl::Time Poll(absl::Time now, RowSink* sink) = 0;
};

}  // namespace tacho::agent
