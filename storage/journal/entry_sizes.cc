#include "storage/journal/entry_sizes.h"

#include "proto/base/check.h"

namespace tacho::storage {

void EntrySizes::PushBack(uint32_t size) {
  back_.push_back(size);
  total_ += size;
  if (back_.size() < kExact + kBlock) return;
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i, back_.pop_front()) sum += back_.front();
  blocks_.push_back(sum);
}

void EntrySizes::Expand(uint64_t sum, std::deque<uint32_t>* sizes) {
  for (size_t left = kBlock; left > 0; --left) {
    sizes->push_back(static_cast<uint32_t>(sum / left));
    sum -= sizes->back();
  }
}

void EntrySizes::PopFront() {
  if (front_.empty() && !blocks_.empty()) {
    Expand(blocks_.front(), &front_);
    blocks_.pop_front();
  }
  std::deque<uint32_t>& from = front_.empty() ? back_ : front_;
  TACHO_CHECK(!from.empty() && total_ >= from.front());
  total_ -= from.front();
  from.pop_front();
}

void EntrySizes::PopBack() {
  if (back_.empty() && !blocks_.empty()) {
    Expand(blocks_.back(), &back_);
    blocks_.pop_back();
  }
  std::deque<uint32_t>& from = back_.empty() ? front_ : back_;
  TACHO_CHECK(!from.empty() && total_ >= from.back());
  total_ -= from.back();
  from.pop_back();
}

}  // namespace tacho::storage
