// Reads a ring that a trainer writes through recorder.h, during its life and after its death.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/ring/ring_format.h"
#include "client/ring/ring_types.h"

namespace tacho::client {

struct RingReadLimits {
  // Rows of one piece; rows and events of one batch. At least 1.
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

  // What is known since the last Read() (or Open()). All only grow at the end.
  const std::vector<RingMetric>& metrics() const { return metrics_; }
  const std::vector<RingAttribute>& attributes() const { return attributes_; }
  const std::vector<RingHistogram>& histograms() const { return histograms_; }

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
  RingReader(int fd, RingInfo info, uint32_t flags, uint32_t version);

  // Whole, or not at all.
  absl::Status ReadAt(uint64_t offset, void* out, size_t size) const;
  absl::StatusOr<RingCursors> ReadCursors() const;
  bool Plausible(const RingCursors& cursors) const;
  absl::Status ReadDefinitions(uint64_t end);
  // Returns how many bytes it took.
  size_t ParseDefinitions(absl::string_view bytes);
  // False if there is one of the name, or no room.
  bool TakeMetric(RingMetric metric);
  bool TakeHistogram(RingHistogram histogram);
  bool NameIsFree(absl::string_view name) const;

  // Position from which on records are not yet overwritten.
  uint64_t OldestPosition(const RingCursors& cursors) const;
  // Reads the rest of one block, up to `end`, into block_. Empty if it has been overwritten
  // meanwhile; position_ is then where to read next.
  absl::StatusOr<absl::string_view> FetchBlock(uint64_t end);
  absl::Status ReadBlock(uint64_t end, class RingBatchBuilder* out);
  // Takes records from `bytes`, which lie at position_. False at a damaged one.
  bool ParseRecords(absl::string_view bytes, class RingBatchBuilder* out);
  bool Follows(const struct RingRecord& record) const;
  // False if it is damaged.
  bool TakeRecord(const struct RingRecord& record, class RingBatchBuilder* out);
  void Rewind();
  void SkipToBlock(uint64_t position);

  const int fd_;
  const RingInfo info_;
  const uint32_t flags_;
  const uint32_t version_;

  std::vector<RingMetric> metrics_;
  std::vector<RingAttribute> attributes_;
  std::vector<RingHistogram> histograms_;
  uint64_t definitions_read_ = 0;
  bool definitions_damaged_ = false;
  bool closed_ = false;
  uint64_t refused_ = 0;
  uint64_t corruptions_ = 0;

  RingCursor resume_;       // End of the last batch: reading from it goes on at position_.
  uint64_t position_ = 0;   // Of the record to read next.
  bool synced_ = true;      // Whether that is the one behind the last record that was read.
  RingCursor last_;         // Behind the last record that was read.
  uint64_t committed_ = 0;  // As last seen; it never falls.
  std::vector<char> block_;
};

}  // namespace tacho::client
