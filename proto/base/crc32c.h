// CRC-32C (Castagnoli), by the processor's own instruction where it has one. Needs the C++ library
// alone, because trainers link it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho {

// The checksum of some bytes that follow others whose checksum is `crc` (0 for none).
uint32_t ExtendCrc32c(uint32_t crc, const void* bytes, size_t size);

// The same without the processor's instruction, for processors that lack it and for tests.
uint32_t ExtendCrc32cPortable(uint32_t crc, const void* bytes, size_t size);

}  // namespace tacho
