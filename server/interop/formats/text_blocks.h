// Texts, one behind the other, which stay where they are until all are gone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::server::interop {

class TextBlocks {
 public:
  // The text as it is kept.
  absl::string_view Add(absl::string_view text) {
    // A block is never enlarged.
    if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < text.size()) {
      blocks_.emplace_back().reserve(std::max(kBlockBytes, text.size()));
    }
    std::string& block = blocks_.back();
    const size_t at = block.size();
    block.append(text.data(), text.size());
    return {block.data() + at, text.size()};
  }
  void Clear() { blocks_.clear(); }

 private:
  static constexpr size_t kBlockBytes = size_t{64} << 10;

  std::deque<std::string> blocks_;
};

}  // namespace tacho::server::interop
