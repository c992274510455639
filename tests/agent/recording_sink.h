// A sink that keeps what it is given, with its checkpoints, as the spool would over restarts.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/sources/rows/source.h"
#include "proto/base/log.h"

namespace tacho::agent::testing {

// A log that keeps its lines in `lines`.
inline log::Log LogTo(std::vector<std::string>* lines) {
  log::LogOptions options;
  options.write = [lines](log::Level, absl::string_view line) { lines->emplace_back(line); };
  return log::Log(std::move(options));
}

// One value of one series, flattened.
struct StoredSample {
  std::string job;
  int64_t task = -1;  // -1: none.
  uint32_t attempt = 0;
  std::string host;
  std::string metric;
  std::string label;  // "name=value", …
  int64_t time_ns = 0;
  int64_t step = INT64_MIN;  // INT64_MIN: none.
  uint64_t bits = 0;         // The value, bit by bit.

  double value() const;
  friend auto operator<=>(const StoredSample&, const StoredSample&) = default;
};

class RecordingSink : public RowSink {
 public:
  absl::StatusOr<uint32_t> DefineLayout(const v1::Layout& layout) override;
  absl::Status AppendRows(uint32_t layout, std::span<const int64_t> times_unix_ns,
                          std::span<const int64_t> steps, std::span<const double> values,
                          const Checkpoint& checkpoint) override;
  absl::Status AppendEvent(const v1::Event& event, const Checkpoint& checkpoint) override;
  absl::Status AppendAttributes(const v1::Attributes& attributes,
                                const Checkpoint& checkpoint) override;
  absl::Status WriteCheckpoint(const Checkpoint& checkpoint) override;
  std::string ReadCheckpoint(absl::string_view key) const override;

  // Takes this many more appends and checkpoints, then answers UNAVAILABLE to all.
  void RefuseAfter(int64_t operations) { room_ = operations; }
  void RefuseNothing() { room_ = INT64_MAX; }

  // What was stored, in order.
  std::vector<StoredSample> samples;
  std::vector<v1::Event> events;
  std::vector<v1::Attributes> attributes;
  std::vector<v1::Layout> layouts;
  std::map<std::string, std::string> checkpoints;
  size_t largest_batch_rows = 0;

 private:
  absl::Status Take(const Checkpoint& checkpoint);

  std::map<std::string, uint32_t> handles_;  // By encoded layout.
  int64_t room_ = INT64_MAX;
};

}  // namespace tacho::agent::testing
