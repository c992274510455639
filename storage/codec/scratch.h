// Room for values that are about to be written: not initialised, and on the stack where they are
// few, because a column is coded in about the time that an allocation of its size takes.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace tacho::storage {

template <typename T, size_t kFew = 1024>
class Scratch {
 public:
  explicit Scratch(size_t size) : size_(size) {
    if (size > kFew) many_ = std::make_unique_for_overwrite<T[]>(size);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  size_t size() const { return size_; }
  T* data() { return many_ ? many_.get() : few_.data(); }
  std::span<T> span() { return {data(), size_}; }

 private:
  size_t size_;
  std::unique_ptr<T[]> many_;
  std::array<T, kFew> few_;
};

}  // namespace tacho::storage
