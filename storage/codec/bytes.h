// Integers and strings as bytes: what every record of the store is made of.
//
//   varint  7 bits a byte, lowest first, top bit set on all but the last; at most 10 bytes
//   be32/64 big-endian, for keys: byte order is number order
//   le32/64 little-endian, for values
//   string  varint length, then the bytes
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::storage {

static_assert(std::endian::native == std::endian::little, "le64 is written as it lies in memory");

inline void PutVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

inline constexpr size_t kMaxVarintBytes = 10;

inline size_t VarintBytes(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

inline void PutBe32(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

inline void PutBe64(uint64_t value, std::string* out) {
  for (int shift = 56; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

// Big-endian with the sign bit flipped: byte order is order of signed numbers.
inline void PutBeTime(int64_t time_ns, std::string* out) {
  PutBe64(static_cast<uint64_t>(time_ns) ^ (uint64_t{1} << 63), out);
}

inline void PutLe32(uint32_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline void PutLe64(uint64_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline void PutString(absl::string_view value, std::string* out) {
  PutVarint(value.size(), out);
  out->append(value.data(), value.size());
}

inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1)));
}

// Takes values off the front of bytes that may be anything. After the first value that is not
// there, ok() is false and everything read is 0 or empty.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && bytes_.empty(); }
  absl::string_view rest() const { return bytes_; }

  uint8_t Byte() { return Take(1) ? static_cast<uint8_t>(taken_[0]) : 0; }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (!Take(1)) return 0;
      const auto byte = static_cast<uint8_t>(taken_[0]);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Fail();
    return 0;
  }

  uint64_t Be(size_t width) {
    if (!Take(width)) return 0;
    uint64_t value = 0;
    for (const char c : taken_) value = (value << 8) | static_cast<uint8_t>(c);
    return value;
  }
  uint32_t Be32() { return static_cast<uint32_t>(Be(4)); }
  uint64_t Be64() { return Be(8); }
  int64_t BeTime() {
    const uint64_t bits = Be(8);
    return ok_ ? static_cast<int64_t>(bits ^ (uint64_t{1} << 63)) : 0;
  }

  uint32_t Le32() {
    uint32_t value = 0;
    if (Take(sizeof(value))) std::memcpy(&value, taken_.data(), sizeof(value));
    return value;
  }

  uint64_t Le64() {
    uint64_t value = 0;
    if (Take(sizeof(value))) std::memcpy(&value, taken_.data(), sizeof(value));
    return value;
  }

  absl::string_view Bytes(uint64_t size) { return Take(size) ? taken_ : absl::string_view(); }
  absl::string_view String() { return Bytes(Varint()); }

 private:
  bool Take(uint64_t size) {
    if (!ok_ || size > bytes_.size()) {
      Fail();
      return false;
    }
    taken_ = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return true;
  }
  void Fail() {
    ok_ = false;
    bytes_ = {};
  }

  absl::string_view bytes_;
  absl::string_view taken_;
  bool ok_ = true;
};

}  // namespace tacho::storage
