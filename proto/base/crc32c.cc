#include "proto/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tacho {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Reflected.

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b] is the effect of byte b followed by k zero bytes: eight bytes take eight look-ups.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t Slice8(uint32_t crc, const unsigned char* bytes, size_t size) {
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; size > 0; ++bytes, --size) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xff];
  return crc;
}

#if defined(__x86_64__)
// The instruction takes three cycles, and a processor can begin one in each, so three stripes run
// at a time. A row of a hundred values is as long as three of them.
constexpr size_t kStripe = 224;
static_assert(kStripe % sizeof(uint64_t) == 0);

using ShiftTables = std::array<std::array<uint32_t, 256>, sizeof(uint32_t)>;

// What each byte of a register has become after a stripe of zeros; the whole is their sum.
constexpr ShiftTables MakeShiftTables() {
  ShiftTables tables{};
  for (size_t byte = 0; byte < tables.size(); ++byte) {
    for (size_t bit = 0; bit < 8; ++bit) {
      uint32_t crc = uint32_t{1} << (8 * byte + bit);
      for (size_t i = 0; i < kStripe; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xff];
      for (size_t value = 0; value < 256; ++value) {
        if ((value >> bit & 1) != 0) tables[byte][value] ^= crc;
      }
    }
  }
  return tables;
}

constexpr ShiftTables kShiftTables = MakeShiftTables();

// The register after a stripe of zeros.
uint64_t Shift(uint64_t crc) {
  return kShiftTables[0][crc & 0xff] ^ kShiftTables[1][crc >> 8 & 0xff] ^
         kShiftTables[2][crc >> 16 & 0xff] ^ kShiftTables[3][crc >> 24 & 0xff];
}

uint64_t WordAt(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

__attribute__((target("sse4.2"))) uint32_t ExtendBySse42(uint32_t crc, const char* at,
                                                         size_t left) {
  uint64_t wide = crc;
  for (; left >= 3 * kStripe; left -= 3 * kStripe, at += 3 * kStripe) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kStripe; i += sizeof(uint64_t)) {
      wide = _mm_crc32_u64(wide, WordAt(at + i));
      second = _mm_crc32_u64(second, WordAt(at + kStripe + i));
      third = _mm_crc32_u64(third, WordAt(at + 2 * kStripe + i));
    }
    wide = Shift(Shift(wide) ^ second) ^ third;
  }
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
    wide = _mm_crc32_u64(wide, WordAt(at));
  }
  crc = static_cast<uint32_t>(wide);
  for (; left > 0; --left, ++at) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(*at));
  return crc;
}

bool HasInstruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#endif

}  // namespace

uint32_t ExtendCrc32cPortable(uint32_t crc, const void* bytes, size_t size) {
  return ~Slice8(~crc, static_cast<const unsigned char*>(bytes), size);
}

uint32_t ExtendCrc32c(uint32_t crc, const void* bytes, size_t size) {
#if defined(__x86_64__)
  if (HasInstruction()) return ~ExtendBySse42(~crc, static_cast<const char*>(bytes), size);
#endif
  return ExtendCrc32cPortable(crc, bytes, size);
}

}  // namespace tacho
