// Sizes of the entries of a journal, first in first out, in little memory.
//
// The newest kExact sizes, and those about to go, are exact. Of those in between only the sum of
// each kBlock is kept, and each of the block's counts as an equal part of it: a backlog of millions
// of entries takes some hundred KiB, and total() is exact at every border of a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace tacho::storage {

// Not thread-safe.
class EntrySizes {
 public:
  static constexpr size_t kExact = 1u << 16;
  static constexpr size_t kBlock = 256;

  uint64_t total() const { return total_; }
  void PushBack(uint32_t size);
  // Both need an entry.
  void PopFront();
  void PopBack();

 private:
  // Makes single sizes of a block's sum.
  static void Expand(uint64_t sum, std::deque<uint32_t>* sizes);

  std::deque<uint32_t> front_;
  std::deque<uint64_t> blocks_;
  std::deque<uint32_t> back_;
  uint64_t total_ = 0;
};

}  // namespace tacho::storage
