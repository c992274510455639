// Reads a ring that a trainer writes through recorder.h, during its life and after its death.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/ring_format.h"

namespace tacho::client {

// Who writes the ring. Two rings are the same if pid, process_start_ticks and created_unix_ns are.
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
  std::optional<int64_t> step;  // The step of the last row before it, if that had one.
  std::string kind;
  std::string message;
  std::vector<std::pair<std::string, std::string>> fields;
};

// A place between two records: how many records (rows and events), and how many rows, lie before
// it.
struct RingCursor {
  uint64_t record = 0;
  uint64_t row = 0;

  friend bool operator==(const RingCursor&, const RingCursor&) = default;
};

struct RingPiece {
  RingCursor end;  // Just behind the piece: reading from here goes on after it.
  std::variant<RingRows, RingEvent> content;
};

struct RingBatch {
  std::vector<RingPiece> pieces;  // In the order in which they were recorded.
  RingCursor end;                 // Where to go on; behind the last piece.
  // What lay between the cursor and `end` and is in no piece, because it was overwritten before it
  // was read or is damaged. Exact. Damage at the very end is counted when something follows it.
  uint64_t lost_rows = 0;
  uint64_t lost_events = 0;
  bool at_end = false;  // Nothing more is there at the moment.
};

struct RingReadLimits {
  // Rows of one piece, and of one batch. A batch may go over by the rows of one block.
  size_t max_rows_per_piece = 4096;
  size_t max_rows = 16384;
};

// Trusts no byte of the file: everything is bounded and checksummed, nothing is mapped (so a file
// that shrinks is an error, not a SIGBUS). Used from one thread at a time.
class RingReader {
 public:
  //   NOT_FOUND            there is no such file.
  //   PERMISSION_DENIED    it may not be read.
  //   FAILED_PRECONDITION  it is a ring of a version that this reader does not know.
  //   DATA_LOSS            it is no regular file, no ring, or its header or size is damaged.
  //   UNAVAILABLE          any other trouble of the system; try again later.
  static absl::StatusOr<std::unique_ptr<RingReader>> Open(const std::string& path);

  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;
  ~RingReader();

  const RingInfo& info() const { return info_; }

  // What is known since the last Read() (or Open()). Both only grow at the end.
  const std::vector<RingMetric>& metrics() const { return metrics_; }
  const std::vector<RingAttribute>& attributes() const { return attributes_; }

  // Reads on from `from`: the end of a piece or batch of this ring, of this reader or an earlier
  // one (so it can be kept over restarts), or {} for everything that is still there. Costs nothing
  // but a look at the header if nothing is new.
  //   OUT_OF_RANGE  `from` lies behind everything in the ring: it belongs to another one.
  //   DATA_LOSS     the file shrank or its cursors make no sense. Give the ring up.
  //   UNAVAILABLE   it could not be read; try again later.
  absl::StatusOr<RingBatch> Read(const RingCursor& from, const RingReadLimits& limits = {});

  // Whether the writer may still write. Ask before the Read() that is to be the last one: what a
  // writer recorded before it was seen dead is then in that Read().
  bool WriterAlive() const;

  // Whether the writer ended properly (and did not die), as of the last Read().
  bool closed() const { return closed_; }
  // Values, metrics, events or attributes that the writer had to refuse, as of the last Read().
  uint64_t refused() const { return refused_; }
  // Damaged blocks and definitions met so far.
  uint64_t corruptions() const { return corruptions_; }

 private:
  class BatchBuilder;
  RingReader(int fd, RingInfo info, uint32_t flags);

  absl::Status ReadAt(uint64_t offset, void* out, size_t size) const;
  absl::StatusOr<RingCursors> ReadCursors() const;
  absl::Status ReadDefinitions(uint64_t end);
  absl::Status ParseDefinitions(absl::string_view bytes);
  uint64_t OldestPosition(const RingCursors& cursors) const;
  absl::Status ReadBlock(const RingCursors& cursors, BatchBuilder* out);
  // Parses records of the block in `block_`, which begins at position_; false if one is damaged.
  bool ParseBlock(absl::string_view bytes, BatchBuilder* out);
  void SkipTo(uint64_t position);

  const int fd_;
  const RingInfo info_;
  const uint32_t flags_;

  std::vector<RingMetric> metrics_;
  std::vector<RingAttribute> attributes_;
  uint64_t definitions_read_ = 0;
  bool definitions_damaged_ = false;
  bool closed_ = false;
  uint64_t refused_ = 0;
  uint64_t corruptions_ = 0;

  uint64_t position_ = 0;  // Of the next record.
  RingCursor next_;     // Of the record at position_, if synced_; else of the last one before it.
  bool synced_ = true;  // Whether records from the last one up to position_ were all read.
  std::vector<char> block_;
};

}  // namespace tacho::client
