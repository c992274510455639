// Unsigned integers of a fixed number of bits, one after the other, lowest bit first.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::storage {

// A bit buffer: room for a 64-bit integer behind up to 63 bits that wait.
__extension__ using BitBuffer = unsigned __int128;

// Bytes that `count` integers of `width` bits take.
constexpr size_t PackedSize(size_t count, unsigned width) { return (count * width + 7) / 8; }

// Appends the low `width` (0 to 64) bits of each integer; the higher bits must be 0.
void PackBits(std::span<const uint64_t> integers, unsigned width, std::string* out);

// Reads out.size() integers. `bytes` must hold PackedSize(out.size(), width).
void UnpackBits(absl::string_view bytes, unsigned width, std::span<uint64_t> out);

}  // namespace tacho::storage
