// Which layouts the collector knows on this stream, and under which id.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace tacho::agent {

// One thread; lives as long as one stream. Ids are reused, the longest unused first, so that any
// number of layouts fits into what a collector allows.
class StreamLayouts {
 public:
  // Ids are below `max_layouts`; 0 counts as 1.
  explicit StreamLayouts(uint32_t max_layouts) : max_layouts_(max_layouts == 0 ? 1 : max_layouts) {}

  struct Use {
    uint32_t id = 0;
    bool define = false;  // The Layout must be sent, under this id, before the next Batch.
  };
  Use Find(uint32_t layout);
  // It was not sent after all.
  void Forget(uint32_t layout);

 private:
  struct Entry {
    uint32_t layout = 0;
    uint32_t id = 0;
  };

  const uint32_t max_layouts_;
  std::vector<uint32_t> free_ids_;  // Ids of forgotten layouts.
  uint32_t next_id_ = 0;
  std::list<Entry> by_use_;  // Longest unused first.
  std::unordered_map<uint32_t, std::list<Entry>::iterator> entries_;
};

}  // namespace tacho::agent
