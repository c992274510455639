// "Value columns" of docs/storage_format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/format/bytes.h"

namespace format_page {

inline constexpr uint64_t kStaleMarker = 0x7ff0000000000002;

// Reads the bits of `count` doubles; the cursor is then at the column's end.
std::vector<uint64_t> ReadValues(Bytes* bytes, size_t count);

}  // namespace format_page
