// The objects of a shard's log in the bucket: segments, which hold records that are acknowledged,
// and the seal that ends a log for good. Both are created and never replaced, so whichever came
// first under a number stays.
//
// Integers are little-endian.
//
//    0   8  magic: "tachoseg" or "tachosel"
//    8   4  format
//   12   4  CRC-32C of everything behind these four bytes
//   16   4  shard
//   20   8  epoch of the log
//   28   8  number in the log, from 1
//
//   a segment goes on with                      a seal goes on with
//   36   8  nonce of the owner's life           36   8  epoch of the owner that sealed it
//   44   8  sequence before its first record    44      end
//   52   8  sequence of its last record
//   60   4  number of records
//   64   4  size of the payload, uncompressed
//   68      payload, one zstd frame: for each record a varint length, then the bytes
//
// Format: docs/bucket_format.md, "The log".
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::storage {

inline constexpr uint32_t kSegmentFormat = 1;
// Limit of the payload. An owner cuts segments at a few MiB, but one record may be larger than
// that.
inline constexpr size_t kMaxSegmentPayload = size_t{64} << 20;

// Where a segment or a seal stands.
struct LogPlace {
  uint32_t shard = 0;
  uint64_t epoch = 0;
  uint64_t number = 0;

  friend bool operator==(const LogPlace&, const LogPlace&) = default;
};

struct Segment {
  LogPlace place;
  uint64_t nonce = 0;  // Random for each life of an owner: equal contents of two lives differ.
  // The sequences of the source that the records are from, for whoever replays them: `after` is the
  // one before the first record, so a segment follows the one before if `after` is its `last`.
  uint64_t after = 0;
  uint64_t last = 0;
  std::vector<std::string> records;  // Any bytes, in order.

  friend bool operator==(const Segment&, const Segment&) = default;
};

struct Seal {
  LogPlace place;
  uint64_t sealed_by = 0;  // The epoch of the owner that ended this log.

  friend bool operator==(const Seal&, const Seal&) = default;
};

using LogObject = std::variant<Segment, Seal>;

// What records would take in a payload.
size_t PayloadBytes(const std::vector<std::string>& records);

// REQUIRES: PayloadBytes() is at most kMaxSegmentPayload.
std::string EncodeSegment(const Segment& segment);
std::string EncodeSeal(const Seal& seal);

// Reads bytes that may be anything, from the object at `place`.
//   UNIMPLEMENTED  a newer version of the program has written it.
//   DATA_LOSS      it is neither, it is damaged, or it belongs to another place.
absl::StatusOr<LogObject> DecodeLogObject(absl::string_view bytes, const LogPlace& place);

// Whether the bytes begin as a segment does, also one of a later format or a damaged one. Only what
// is a segment for certain may be deleted from a log.
bool LooksLikeSegment(absl::string_view bytes);

}  // namespace tacho::storage
