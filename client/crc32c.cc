#include "proto/base/crc32c.h"

#include <array>
#include <cstring>

namespace tacho::client {
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
__attribute__((target("sse4.2"))) uint32_t Hardware(uint32_t crc, const unsigned char* bytes,
                                                    size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  if (size >= 4) {
    uint32_t word;
    std::memcpy(&word, bytes, 4);
    crc = __builtin_ia32_crc32si(crc, word);
    bytes += 4;
    size -= 4;
  }
  for (; size > 0; ++bytes, --size) crc = __builtin_ia32_crc32qi(crc, *bytes);
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
  if (HasInstruction()) return ~Hardware(~crc, static_cast<const unsigned char*>(bytes), size);
#endif
  return ExtendCrc32cPortable(crc, bytes, size);
}

}  // namespace tacho::client
