// For tests that want samples and nothing else.
#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "storage/model/series_reader.h"

namespace tacho::storage {

// Replaces *block with what comes next; false if nothing is left. `reader` points to one.
template <typename Reader>
absl::StatusOr<bool> NextBlock(const Reader& reader, SampleBlock* block) {
  Chunk chunk;
  absl::StatusOr<bool> more = reader->Next({}, &chunk);
  if (!more.ok() || !*more) return more;
  chunk.CopyToBlock();
  *block = std::move(*chunk.block());
  return true;
}

}  // namespace tacho::storage
