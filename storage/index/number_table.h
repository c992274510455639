// Finds the numbers of things by the hashes of those things.
//
// A hash map of a million entries stands still for a second when it doubles, and with it everybody
// who waits for its lock. This one grows in small steps (extendible hashing): it consists of
// buckets of at most kMaxSlots slots, a full one is split in two, and a directory finds the bucket
// by the first bits of a hash. The hashes are kept, so that growing does not look at the things.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/base/check.h"

namespace tacho::storage {

// Not thread-safe.
class NumberTable {
 public:
  // The number that was added under this hash and for which `is_it` is true.
  template <typename IsIt>
  std::optional<uint32_t> Find(size_t hash, const IsIt& is_it) const {
    if (buckets_.empty()) return std::nullopt;
    const uint32_t shortened = Shorten(hash);
    const Bucket& bucket = buckets_[directory_[DirectoryIndex(shortened)]];
    const size_t mask = bucket.slots.size() - 1;
    for (size_t at = shortened & mask; bucket.slots[at].number != kFree; at = (at + 1) & mask) {
      const Slot& slot = bucket.slots[at];
      if (slot.hash == shortened && is_it(slot.number)) return slot.number;
    }
    return std::nullopt;
  }

  // Adds a number below UINT32_MAX that is not there yet.
  void Add(size_t hash, uint32_t number);

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  static constexpr size_t kLeastSlots = 8;
  static constexpr size_t kMaxSlots = 1024;
  // Beyond this bucket splits would no longer separate hashes: they differ in too few bits.
  static constexpr uint32_t kMaxDepth = 16;

  struct Slot {
    uint32_t hash = 0;
    uint32_t number = kFree;
  };
  struct Bucket {
    uint32_t depth = 0;  // So many first bits are the same in all of its hashes.
    uint32_t used = 0;
    std::vector<Slot> slots;  // A power of two of them, at most three quarters used.
  };

  static uint32_t Shorten(size_t hash) { return static_cast<uint32_t>(hash ^ (hash >> 32)); }
  size_t DirectoryIndex(uint32_t hash) const { return depth_ == 0 ? 0 : hash >> (32 - depth_); }
  static void Put(const Slot& slot, Bucket* bucket);
  void Split(uint32_t index);

  uint32_t depth_ = 0;  // Of the directory, which has 2^depth_ entries.
  std::vector<uint32_t> directory_;
  std::vector<Bucket> buckets_;
};

}  // namespace tacho::storage
