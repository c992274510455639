// What the store itself remembers of its history in the bucket, in the column family "default":
//
//   key                    value
//   bucket/manifest        the manifest as this store last knew it, see docs/bucket_format.md
//   bucket/pending         le64 nonces of manifests that it has sent since; one of them may be
//   there bucket/whole_from      zigzag day: before it, the disk has at most rows that came late
//   bucket/day/ be-time N  le32 CRC-32C of what of day N is in the bucket | varint keys | varint
//                          bytes | the key of the day's list
//
// It serves three purposes. The store can be opened while the bucket does not answer. It knows
// whether the bucket's manifest is its own: a copy of a store, or an old snapshot, must not take
// the history of another for its own, because ids of series would mean different series. And a day
// leaves the disk only if the bucket has exactly what the disk has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/db/database.h"
#include "storage/shard/manifest.h"

namespace tacho::storage {

// A checksum of keys and values in their order.
class DayDigest {
 public:
  DayDigest() = default;
  DayDigest(uint64_t keys, uint64_t bytes, uint32_t crc32c)
      : keys_(keys), bytes_(bytes), crc32c_(crc32c) {}

  void Add(absl::string_view key, absl::string_view value);

  uint64_t keys() const { return keys_; }
  uint64_t bytes() const { return bytes_; }
  uint32_t crc32c() const { return crc32c_; }

  friend bool operator==(const DayDigest&, const DayDigest&) = default;

 private:
  uint64_t keys_ = 0;
  uint64_t bytes_ = 0;
  uint32_t crc32c_ = 0;
};

// What the disk had of a day when it was written into the bucket.
struct SentDay {
  DayDigest digest;
  std::string list;  // The key of the list that names its blocks.
};

// One thread. Each change is synced before the call returns.
//   UNAVAILABLE  the disk refused; nothing has changed.
class HistoryRecord {
 public:
  // `database` is not owned.
  explicit HistoryRecord(const Database* database) : database_(database) {}

  //   DATA_LOSS  a record is damaged.
  absl::Status Load();

  const std::optional<Manifest>& known() const { return known_; }
  int64_t whole_from() const { return whole_from_; }
  const SentDay* FindSent(int64_t day) const;
  // Whether this store has written the manifest with this nonce.
  bool IsMine(uint64_t nonce) const;

  // Before a manifest is sent.
  absl::Status AddPending(uint64_t nonce);
  // Once it is known to be there. The days that it does not have are forgotten.
  absl::Status SetKnown(const Manifest& manifest);
  // Before the manifest that names the list is sent.
  absl::Status SetSent(int64_t day, SentDay sent);
  // Before the first day before `day` leaves the disk. Never falls.
  absl::Status SetWholeFrom(int64_t day);

 private:
  absl::Status Read(absl::string_view key, absl::string_view value);

  const Database* const database_;
  std::optional<Manifest> known_;
  std::vector<uint64_t> pending_;
  int64_t whole_from_ = INT64_MIN;
  std::map<int64_t, SentDay> sent_;
};

}  // namespace tacho::storage
