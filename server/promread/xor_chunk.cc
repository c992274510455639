#include "server/promread/xor_chunk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "proto/base/check.h"

namespace tacho::server::promread {
namespace {

constexpr size_t kHeadBytes = 2;
constexpr size_t kMostSamples = 0xFFFF;
constexpr size_t kUsualBytes = 1024;  // Of kSamplesOfChunk samples without many equal values.
constexpr int kMaxLeading = 31;       // Five bits.

// Whether the change fits into the encoding's slot of so many bits.
bool FitsSlot(int64_t change, int bits) {
  return -((int64_t{1} << (bits - 1)) - 1) <= change && change <= int64_t{1} << (bits - 1);
}

}  // namespace

// Bits gather in a word, because byte by byte they would cost more than all else of a sample.
void XorChunk::AddBits(uint64_t bits, int count) {
  if (count < 64) bits &= (uint64_t{1} << count) - 1;
  if (pending_bits_ + count < 64) {
    pending_ = pending_ << count | bits;
    pending_bits_ += count;
    return;
  }
  const int rest = pending_bits_ + count - 64;  // Of `count`, so less than 64.
  const uint64_t before = pending_bits_ == 0 ? 0 : pending_ << (64 - pending_bits_);
  AppendWord(before | bits >> rest, sizeof(uint64_t));
  pending_ = bits & ((uint64_t{1} << rest) - 1);
  pending_bits_ = rest;
}

// The highest bytes of a word.
void XorChunk::AppendWord(uint64_t word, size_t bytes) {
  std::array<char, sizeof(word)> big_endian;
  for (char& byte : big_endian) {
    byte = static_cast<char>(word >> 56);
    word <<= 8;
  }
  bytes_.append(big_endian.data(), bytes);
}

void XorChunk::AddVarint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) AddByte(static_cast<uint8_t>(value | 0x80));
  AddByte(static_cast<uint8_t>(value));
}

void XorChunk::AddTimeChange(int64_t change) {
  const auto bits = static_cast<uint64_t>(change);
  if (change == 0) return AddBits(0, 1);
  if (FitsSlot(change, 14)) return AddBits(0b10, 2), AddBits(bits, 14);
  if (FitsSlot(change, 17)) return AddBits(0b110, 3), AddBits(bits, 17);
  if (FitsSlot(change, 20)) return AddBits(0b1110, 4), AddBits(bits, 20);
  AddBits(0b1111, 4);
  AddBits(bits, 64);
}

void XorChunk::AddValue(uint64_t bits) {
  const uint64_t changed = bits ^ value_;
  if (changed == 0) return AddBits(0, 1);
  const int leading = std::min(std::countl_zero(changed), kMaxLeading);
  const int trailing = std::countr_zero(changed);
  if (leading_ >= 0 && leading >= leading_ && trailing >= trailing_) {
    AddBits(0b10, 2);
    return AddBits(changed >> trailing_, 64 - leading_ - trailing_);
  }
  leading_ = leading;
  trailing_ = trailing;
  const int significant = 64 - leading - trailing;
  AddBits(0b11, 2);
  AddBits(static_cast<uint64_t>(leading), 5);
  AddBits(static_cast<uint64_t>(significant), 6);  // 64 becomes 0, which stands for it.
  AddBits(changed >> trailing, significant);
}

void XorChunk::Append(int64_t time_ms, double value) {
  TACHO_CHECK(samples_ < kMostSamples);
  const auto bits = std::bit_cast<uint64_t>(value);
  // Unsigned, so that all of int64 fits.
  const uint64_t distance = static_cast<uint64_t>(time_ms) - static_cast<uint64_t>(last_ms_);
  if (samples_ == 0) {
    bytes_.reserve(kUsualBytes);
    bytes_.assign(kHeadBytes, '\0');
    const auto time = static_cast<uint64_t>(time_ms);
    AddVarint((time << 1) ^ static_cast<uint64_t>(time_ms >> 63));
    AddBits(bits, 64);
    first_ms_ = time_ms;
  } else if (samples_ == 1) {
    AddVarint(distance);
    AddValue(bits);
  } else {
    AddTimeChange(static_cast<int64_t>(distance - distance_ms_));
    AddValue(bits);
  }
  distance_ms_ = distance;
  last_ms_ = time_ms;
  value_ = bits;
  ++samples_;
}

std::string XorChunk::Take() {
  if (pending_bits_ > 0) {
    AppendWord(pending_ << (64 - pending_bits_), static_cast<size_t>(pending_bits_ + 7) / 8);
  }
  if (samples_ > 0) {
    bytes_[0] = static_cast<char>(samples_ >> 8);
    bytes_[1] = static_cast<char>(samples_ & 0xFF);
  }
  std::string bytes = std::exchange(bytes_, {});
  *this = XorChunk();
  return bytes;
}

}  // namespace tacho::server::promread
