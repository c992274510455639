#include "storage/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tacho::storage {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82F63B78;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t ExtendByTable(uint32_t crc, absl::string_view bytes) {
  for (const char c : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)
// The instruction takes three cycles, and a processor begins one in each: so three stripes are
// worked on at a time. A row of a hundred values is as long as three of them.
constexpr size_t kStripe = 224;
static_assert(kStripe % sizeof(uint64_t) == 0);

using ShiftTables = std::array<std::array<uint32_t, 256>, sizeof(uint32_t)>;

// What each byte of a register has become after a stripe of zeros; the whole is their sum.
constexpr ShiftTables MakeShiftTables() {
  ShiftTables tables{};
  for (size_t byte = 0; byte < tables.size(); ++byte) {
    for (size_t bit = 0; bit < 8; ++bit) {
      uint32_t crc = uint32_t{1} << (8 * byte + bit);
      for (size_t i = 0; i < kStripe; ++i) crc = (crc >> 8) ^ kTable[crc & 0xff];
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

__attribute__((target("sse4.2"))) uint32_t ExtendBySse42(uint32_t crc, absl::string_view bytes) {
  uint64_t wide = crc;
  const char* at = bytes.data();
  size_t left = bytes.size();
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
#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~ExtendBySse42(~crc, bytes);
#endif
  return ~ExtendByTable(~crc, bytes);
}

uint32_t Crc32c(absl::string_view bytes) { return ExtendCrc32c(0, bytes); }

}  // namespace tacho::storage

#if defined(__x86_64__)
// Takes the place of RocksDB's own function, which checksums all that goes into its log: of a name
// that both have, shared libraries take the program's. Distributions build RocksDB for the oldest
// x86-64, where it works by table, and that was a tenth of the collector's processor time at full
// speed. The function is pure, so that nobody can tell but by its speed; where RocksDB has none of
// this name and type, nobody calls this one.
namespace rocksdb::crc32c {
uint32_t Extend(uint32_t crc, const char* bytes, size_t size);
uint32_t Extend(uint32_t crc, const char* bytes, size_t size) {
  return tacho::storage::ExtendCrc32c(crc, absl::string_view(bytes, size));
}
}  // namespace rocksdb::crc32c
#endif
