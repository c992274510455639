#include "storage/index/number_table.h"

#include <utility>

namespace tacho::storage {

void NumberTable::Put(const Slot& slot, Bucket* bucket) {
  const size_t mask = bucket->slots.size() - 1;
  size_t at = slot.hash & mask;
  while (bucket->slots[at].number != kFree) at = (at + 1) & mask;
  bucket->slots[at] = slot;
  ++bucket->used;
}

void NumberTable::Add(size_t hash, uint32_t number) {
  TACHO_CHECK(number != kFree);
  const Slot slot{Shorten(hash), number};
  if (buckets_.empty()) {
    buckets_.emplace_back().slots.resize(kLeastSlots);
    directory_.push_back(0);
  }
  for (;;) {
    const uint32_t index = directory_[DirectoryIndex(slot.hash)];
    Bucket& bucket = buckets_[index];
    if (4 * (bucket.used + size_t{1}) <= 3 * bucket.slots.size()) return Put(slot, &bucket);
    if (bucket.slots.size() >= kMaxSlots && bucket.depth < kMaxDepth) {
      Split(index);
      continue;
    }
    Bucket grown{.depth = bucket.depth};
    grown.slots.resize(2 * bucket.slots.size());
    for (const Slot& one : bucket.slots) {
      if (one.number != kFree) Put(one, &grown);
    }
    bucket = std::move(grown);
  }
}

void NumberTable::Split(uint32_t index) {
  if (buckets_[index].depth == depth_) {
    std::vector<uint32_t> doubled;
    doubled.reserve(2 * directory_.size());
    for (const uint32_t one : directory_) doubled.insert(doubled.end(), 2, one);
    directory_ = std::move(doubled);
    ++depth_;
  }
  const Bucket full = std::move(buckets_[index]);
  const uint32_t depth = full.depth + 1;
  const auto second = static_cast<uint32_t>(buckets_.size());
  buckets_.emplace_back();
  for (const uint32_t half : {index, second}) {
    buckets_[half] = {.depth = depth};
    buckets_[half].slots.resize(full.slots.size());
  }
  const uint32_t bit = uint32_t{1} << (32 - depth);
  size_t first_entry = 0;  // The first of the directory's entries for the second half.
  for (const Slot& slot : full.slots) {
    if (slot.number == kFree) continue;
    Put(slot, &buckets_[(slot.hash & bit) != 0 ? second : index]);
    first_entry = DirectoryIndex((slot.hash | bit) & ~(bit - 1));
  }
  // They follow one another.
  const size_t entries = size_t{1} << (depth_ - depth);
  for (size_t i = 0; i < entries; ++i) directory_[first_entry + i] = second;
}

}  // namespace tacho::storage
