#include "storage/bit_packing.h"

#include <algorithm>
#include <cstring>

namespace tacho::storage {

void PackBits(std::span<const uint64_t> integers, unsigned width, std::string* out) {
  if (width == 0) return;
  // At most 7 bits wait in the accumulator before an integer of up to 64 bits is added.
  BitBuffer waiting = 0;
  unsigned bits = 0;
  for (const uint64_t integer : integers) {
    waiting |= static_cast<BitBuffer>(integer) << bits;
    bits += width;
    for (; bits >= 8; bits -= 8, waiting >>= 8) {
      out->push_back(static_cast<char>(static_cast<uint8_t>(waiting)));
    }
  }
  if (bits > 0) out->push_back(static_cast<char>(static_cast<uint8_t>(waiting)));
}

void UnpackBits(absl::string_view bytes, unsigned width, std::span<uint64_t> out) {
  if (width == 0) {
    std::fill(out.begin(), out.end(), 0);
    return;
  }
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  BitBuffer waiting = 0;
  unsigned bits = 0;
  size_t next = 0;
  for (uint64_t& integer : out) {
    while (bits < width) {
      uint64_t chunk = 0;
      const size_t take = std::min<size_t>(sizeof(chunk), bytes.size() - next);
      if (take == 0) break;
      std::memcpy(&chunk, bytes.data() + next, take);
      waiting |= static_cast<BitBuffer>(chunk) << bits;
      bits += static_cast<unsigned>(take * 8);
      next += take;
    }
    integer = static_cast<uint64_t>(waiting) & mask;
    waiting >>= width;
    bits -= width;
  }
}

}  // namespace tacho::storage
