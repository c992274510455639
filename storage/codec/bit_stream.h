// Bits one after the other, the lowest bit of each byte first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "proto/base/check.h"
#include "storage/codec/bytes.h"

namespace tacho::storage {

// Room for values that are about to be written: not initialised, and on the stack where they are
// few, because a column is coded in about the time that an allocation of its size takes.
template <typename T, size_t kFew = 1024>
class Scratch {
 public:
  explicit Scratch(size_t size) : size_(size) {
    if (size > kFew) many_ = std::make_unique_for_overwrite<T[]>(size);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  size_t size() const { return size_; }
  T* data() { return many_ ? many_.get() : few_.data(); }
  std::span<T> span() { return {data(), size_}; }

 private:
  size_t size_;
  std::unique_ptr<T[]> many_;
  std::array<T, kFew> few_;
};

// Readers of bits load eight bytes at once, up to 8 values before they look where they are. Bytes
// that they are given are followed by this many others that may be read, whatever they hold.
constexpr size_t kBitPadding = 128;

// Shifts by counts that are not known beforehand take a third of the instructions where the
// processor has those of BMI2: the loops that consist of them are compiled for both.
#if defined(__x86_64__)
#define TACHO_TARGET_BMI2 __attribute__((target("bmi,bmi2")))
inline bool HasBmi2() { return __builtin_cpu_supports("bmi2") != 0; }
#else
#define TACHO_TARGET_BMI2
inline bool HasBmi2() { return false; }
#endif
#define TACHO_ALWAYS_INLINE_LAMBDA __attribute__((always_inline))
#define TACHO_ALWAYS_INLINE TACHO_ALWAYS_INLINE_LAMBDA inline

// Wider than this, a number is written and read in two parts.
constexpr unsigned kMaxBitsAtOnce = 56;

constexpr uint64_t LowBits(unsigned count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

// The same for counts below 64, without asking.
constexpr uint64_t FewBits(uint64_t count) { return (uint64_t{1} << count) - 1; }

// Appends to *out, which nothing else may touch until Finish().
class BitWriter {
 public:
  // At most `max_bits` will be written.
  BitWriter(size_t max_bits, std::string* out) : out_(out), at_(out->size()) {
    out->resize(at_ + max_bits / 8 + 2 * sizeof(uint64_t));
    data_ = out->data();
  }

  // `count` up to kMaxBitsAtOnce; the higher bits of `value` must be 0.
  void Write(uint64_t value, unsigned count) {
    waiting_ |= value << bits_;
    bits_ += count;
    std::memcpy(data_ + at_, &waiting_, sizeof(waiting_));
    at_ += bits_ / 8;
    waiting_ >>= bits_ & ~7U;
    bits_ &= 7;
  }
  // `count` up to 64.
  void WriteWide(uint64_t value, unsigned count) {
    if (count <= kMaxBitsAtOnce) return Write(value, count);
    Write(value & LowBits(32), 32);
    Write(value >> 32, count - 32);
  }
  // Fills the last byte with zeros.
  void Finish() {
    TACHO_CHECK(at_ + sizeof(waiting_) <= out_->size());  // It wrote no more than it said.
    out_->resize(at_ + (bits_ > 0 ? 1 : 0));
  }

 private:
  std::string* out_;
  char* data_;
  size_t at_;
  uint64_t waiting_ = 0;
  unsigned bits_ = 0;  // Bits in waiting_; fewer than 8 between writes.
};

// Reads bits of padded bytes that may be anything. Reading past the end gives any bits: ok() says
// afterwards, and must be asked before 8 values more are read than it was asked for.
class BitReader {
 public:
  explicit BitReader(absl::string_view padded) : data_(padded.data()), end_(padded.size() * 8) {}

  bool ok() const { return at_ <= end_; }
  // The next kMaxBitsAtOnce bits, and what follows them.
  uint64_t Peek() const { return Word() >> BitOfWord(); }
  // Eight bytes, of which the next bit is number BitOfWord().
  uint64_t Word() const {
    uint64_t word = 0;
    std::memcpy(&word, data_ + at_ / 8, sizeof(word));
    return word;
  }
  unsigned BitOfWord() const { return static_cast<unsigned>(at_ % 8); }
  void Skip(size_t count) { at_ += count; }
  uint64_t Read(unsigned count) {
    const uint64_t value = Peek() & FewBits(count);
    at_ += count;
    return value;
  }
  uint64_t ReadWide(unsigned count) {
    if (count <= kMaxBitsAtOnce) return Read(count);
    const uint64_t low = Read(32);
    return low | Read(count - 32) << 32;
  }
  // Bytes that what was read lies in.
  size_t BytesRead() const { return (at_ + 7) / 8; }

 private:
  const char* data_;
  size_t end_;
  size_t at_ = 0;
};

// A copy of bytes, padded.
class Padded {
 public:
  explicit Padded(absl::string_view bytes) : copy_(bytes.size() + kBitPadding) {
    std::fill_n(std::copy(bytes.begin(), bytes.end(), copy_.data()), kBitPadding, char{0});
  }
  absl::string_view bytes() { return {copy_.data(), copy_.size() - kBitPadding}; }

 private:
  Scratch<char, 4096> copy_;
};

}  // namespace tacho::storage
