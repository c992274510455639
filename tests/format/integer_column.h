// "Integer columns" of docs/storage_format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/format/bytes.h"

namespace format_page {

// Reads a column of `count` integers; the cursor is then at its end.
std::vector<int64_t> ReadIntegers(Bytes* bytes, size_t count);

// The numbers of the form "buckets".
std::vector<uint64_t> ReadBuckets(Bytes* bytes, size_t count);

}  // namespace format_page
