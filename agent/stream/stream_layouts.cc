#include "agent/stream/stream_layouts.h"

#include <iterator>

#include "proto/base/check.h"

namespace tacho::agent {

StreamLayouts::Use StreamLayouts::Find(uint32_t layout) {
  const auto found = entries_.find(layout);
  if (found != entries_.end()) {
    by_use_.splice(by_use_.end(), by_use_, found->second);
    return {.id = found->second->id, .define = false};
  }
  uint32_t id = next_id_;
  if (!free_ids_.empty()) {
    id = free_ids_.back();
    free_ids_.pop_back();
  } else if (next_id_ < max_layouts_) {
    ++next_id_;
  } else {
    id = by_use_.front().id;
    entries_.erase(by_use_.front().layout);
    by_use_.pop_front();
  }
  TACHO_CHECK(id < max_layouts_);
  by_use_.push_back({.layout = layout, .id = id});
  entries_.emplace(layout, std::prev(by_use_.end()));
  return {.id = id, .define = true};
}

void StreamLayouts::Forget(uint32_t layout) {
  const auto found = entries_.find(layout);
  if (found == entries_.end()) return;
  TACHO_CHECK(free_ids_.size() < next_id_);
  free_ids_.push_back(found->second->id);
  by_use_.erase(found->second);
  entries_.erase(found);
}

}  // namespace tacho::agent
