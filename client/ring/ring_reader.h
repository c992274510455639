// Reads a ring that a trainer writes through recorder.h, while it lives and after it has died.
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

// Trusts no byte of the file: it bounds everything, verifies checksums, and maps nothing, so that a
// file that shrinks is an error and not a SIGBUS. Used from one thread at a time.
class RingReader {
 public:
  //   NOT_FOUND            there is no such file.
  //   PERMISSION_DENIED    the file may not be read.
  //   FAILED_PRECONDITION  the ring has a version that this reader does not know.
  //   DATA_LOSS            not a regular file, not a ring, or the header or size is damaged.
  //   UNAVAILABLE          any other error of the system; try again later.
  static absl::StatusOr<std::unique_ptr<RingReader>> Open(const std::string& path);

  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;
  ~RingReader();

  const RingInfo& info() const { return info_; }

  // As of the last Read() (or Open()). All three only grow at the end.
  const std::vector<RingMetric>& metrics() const { return metrics_; }
  const std::vector<RingAttribute>& attributes() const { return attributes_; }
  const std::vector<RingHistogram>& histograms() const { return histograms_; }

  // Continues from `from`: the end of a piece or batch of this ring, even of an earlier reader (so
  // that a caller can keep it over restarts), or {} for everything that is still there. If nothing
  // is new, it reads the header only.
  //   OUT_OF_RANGE  `from` lies after everything in the ring: it belongs to another ring.
  //   DATA_LOSS     the file shrank or its cursors are inconsistent. Give the ring up.
  //   UNAVAILABLE   the file could not be read; try again later.
  absl::StatusOr<RingBatch> Read(const RingCursor& from, const RingReadLimits& limits = {});

  // Whether the writer may still write. Ask before the Read() that is to be the last: that Read()
  // then has everything that the writer recorded before it died.
  bool WriterAlive() const;

  // Whether the writer closed the ring (rather than died), as of the last Read().
  bool closed() const { return closed_; }
  // Values, metrics, events or attributes that the writer had to refuse, as of the last Read().
  uint64_t refused() const { return refused_; }
  // Damaged blocks and definitions found so far.
  uint64_t corruptions() const { return corruptions_; }

 private:
  RingReader(int fd, RingInfo info, uint32_t flags, uint32_t version);

  // Reads all bytes, or fails.
  absl::Status ReadAt(uint64_t offset, void* out, size_t size) const;
  absl::StatusOr<RingCursors> ReadCursors() const;
  bool Plausible(const RingCursors& cursors) const;
  absl::Status ReadDefinitions(uint64_t end);
  // Returns how many bytes it took.
  size_t ParseDefinitions(absl::string_view bytes);
  // False if the name is taken or there is no room.
  bool TakeMetric(RingMetric metric);
  bool TakeHistogram(RingHistogram histogram);
  bool NameIsFree(absl::string_view name) const;

  // The oldest position that is not overwritten yet.
  uint64_t OldestPosition(const RingCursors& cursors) const;
  // Reads the rest of one block, up to `end`, into block_. Empty if the writer has overwritten it
  // meanwhile; position_ is then where to continue.
  absl::StatusOr<absl::string_view> FetchBlock(uint64_t end);
  absl::Status ReadBlock(uint64_t end, class RingBatchBuilder* out);
  // Takes records from `bytes`, which begin at position_. False at a damaged record.
  bool ParseRecords(absl::string_view bytes, class RingBatchBuilder* out);
  bool Follows(const struct RingRecord& record) const;
  // False if the record is damaged.
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
  uint64_t position_ = 0;   // Where the next record begins.
  bool synced_ = true;      // Whether it follows the last record that was read, without a gap.
  RingCursor last_;         // After the last record that was read.
  uint64_t committed_ = 0;  // As last seen; never falls.
  std::vector<char> block_;
};

}  // namespace tacho::client
