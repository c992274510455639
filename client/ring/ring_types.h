// The types in which a reader of a ring returns what it found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/ring/ring_format.h"

namespace tacho::client {

// The writer of a ring. Two rings are the same if pid, process_start_ticks and created_unix_ns are
// equal.
struct RingInfo {
  std::string job;  // 1 to 256 bytes of clean text (ring_text.h), as all texts of a ring.
  uint32_t task = 0;
  uint32_t attempt = 0;
  uint32_t pid = 0;
  uint64_t process_start_ticks = 0;
  int64_t created_unix_ns = 0;
  uint64_t record_bytes = 0;
};

struct RingMetric {
  std::string name;  // Unique in its ring.
  MetricType type = MetricType::kGauge;
  std::string unit;
  std::string help;
};

// A metric in many buckets.
struct RingHistogram {
  std::string name;  // No metric has this name, or this name with "_sum".
  std::string unit;
  std::string help;
  std::vector<double> bounds;  // 1 to kMaxHistogramBounds, finite, ascending.
};

// Merged key by key into what is known; an empty value removes the key.
struct RingAttribute {
  std::string key;
  std::string value;
};

// Consecutive rows with the same columns: the first `metric_count` metrics of
// RingReader::metrics().
struct RingRows {
  uint32_t metric_count = 0;  // At least 1.
  bool has_steps = false;
  std::vector<int64_t> times_unix_ns;
  std::vector<int64_t> steps;  // One a row, or none.
  std::vector<double> values;  // Row by row; the stale marker where a metric was not set.
};

struct RingEvent {
  int64_t time_unix_ns = 0;
  std::optional<int64_t> step;  // One that the trainer gave, else that of the last row before it.
  std::string kind;
  std::string message;
  std::vector<std::pair<std::string, std::string>> fields;
};

// The counts of a histogram at a time. A lost state does not count as a loss, because the next one
// has everything it had. After a restart of the reader, the last state may come again.
struct RingHistogramState {
  uint32_t histogram = 0;  // Index in RingReader::histograms().
  int64_t time_unix_ns = 0;
  std::optional<int64_t> step;
  double sum = 0;
  std::vector<uint64_t> counts;  // For each bucket, then above the last bound; not cumulative.
};

// A place between two records: how many records (rows and events), and how many rows, precede it.
struct RingCursor {
  uint64_t record = 0;
  uint64_t row = 0;

  friend bool operator==(const RingCursor&, const RingCursor&) = default;
};

struct RingPiece {
  RingCursor end;  // Just after the piece: reading from here continues after it.
  std::variant<RingRows, RingEvent, RingHistogramState> content;
};

struct RingBatch {
  std::vector<RingPiece> pieces;  // In the order in which they were recorded.
  RingCursor end;                 // Where to continue; after the last piece.
  // Rows and events between the cursor and `end` that are in no piece, because they were
  // overwritten before the reader came or are damaged. Exact. Damage at the very end counts once
  // something follows it.
  uint64_t lost_rows = 0;
  uint64_t lost_events = 0;
  bool at_end = false;  // There is nothing more at the moment.
};

}  // namespace tacho::client
