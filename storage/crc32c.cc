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
__attribute__((target("sse4.2"))) uint32_t ExtendBySse42(uint32_t crc, absl::string_view bytes) {
  uint64_t wide = crc;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
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
