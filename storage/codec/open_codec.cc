// The codec of open rows, which are in memory only. It is simpler and faster than that of columns,
// because what it encodes is decoded again when the rows are sealed.
#include "storage/codec/open_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "storage/codec/bytes.h"
#include "storage/model/series.h"

namespace tacho::storage {
namespace {

constexpr size_t kBlock = 16;
// A number of more bits takes eight bytes: it would not fit a word that has other bits before it.
constexpr unsigned kWidest = 56;

enum Mode : uint8_t { kConstant = 0, kIntegers = 1, kXor = 2 };
constexpr uint8_t kModeMask = 3;
constexpr uint8_t kMissing = 4;
constexpr uint8_t kFlat = 8;
constexpr uint8_t kAscending = 16;
constexpr unsigned kExponentShift = 5;

constexpr std::array<double, 7> kPowersOfTen = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
constexpr double kLargestInteger = 0x1p53;

uint64_t Load(const char* from) {
  uint64_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

void Store(uint64_t word, char* to) { std::memcpy(to, &word, sizeof(word)); }

// Packs number_at(0) to number_at(count - 1).
template <typename NumberAt>
void PackBlocks(size_t count, const NumberAt& number_at, std::string* out) {
  const size_t before = out->size();
  const size_t blocks = (count + kBlock - 1) / kBlock;
  out->resize(before + blocks + count * sizeof(uint64_t) + sizeof(uint64_t));
  char* to = out->data() + before;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    std::array<uint64_t, kBlock> block;
    uint64_t all = 0;
    for (size_t i = 0; i < size; ++i) all |= block[i] = number_at(begin + i);
    const auto width = static_cast<unsigned>(std::bit_width(all));
    if (width > kWidest) {
      *to++ = 64;
      std::memcpy(to, block.data(), size * sizeof(uint64_t));
      to += size * sizeof(uint64_t);
      continue;
    }
    *to++ = static_cast<char>(width);
    uint64_t waiting = 0;
    unsigned bits = 0;  // Bits in `waiting`; below 8.
    for (size_t i = 0; i < size; ++i) {
      waiting |= block[i] << bits;
      bits += width;
      Store(waiting, to);
      to += bits / 8;
      waiting >>= bits & ~7u;
      bits %= 8;
    }
    if (bits > 0) *to++ = static_cast<char>(waiting);
  }
  out->resize(static_cast<size_t>(to - out->data()));
}

// Calls `take` for each of `count` numbers.
template <typename Take>
void UnpackBlocks(const char* from, size_t count, const Take& take) {
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    const auto width = static_cast<uint8_t>(*from++);
    if (width > kWidest) {
      for (size_t i = 0; i < size; ++i) take(Load(from + i * sizeof(uint64_t)));
      from += size * sizeof(uint64_t);
      continue;
    }
    const uint64_t mask = (uint64_t{1} << width) - 1;
    size_t bit = 0;
    for (size_t i = 0; i < size; ++i, bit += width) take(Load(from + bit / 8) >> bit % 8 & mask);
    from += (bit + 7) / 8;
  }
}

// The integer that `value` times 10^e is, if that gives the value back, bit for bit.
bool Scale(double value, unsigned e, int64_t* integer) {
  const double scaled = value * kPowersOfTen[e];
  if (!(std::abs(scaled) < kLargestInteger)) return false;
  *integer = static_cast<int64_t>(scaled + std::copysign(0.5, scaled));
  return std::bit_cast<uint64_t>(static_cast<double>(*integer) / kPowersOfTen[e]) ==
         std::bit_cast<uint64_t>(value);
}

// The smallest exponent at which all values are integers; kPowersOfTen.size() if there is none.
unsigned ScaleAll(std::span<const double> values, std::span<int64_t> integers) {
  unsigned e = 0;
  for (size_t i = 0; i < values.size() && e < kPowersOfTen.size();) {
    if (Scale(values[i], e, &integers[i])) {
      ++i;
      continue;
    }
    do {
      ++e;
    } while (e < kPowersOfTen.size() && !Scale(values[i], e, &integers[i]));
    i = 0;
  }
  return e;
}

// `flags` has what is known so far; stands at flags_at once all is.
void EncodeScaled(std::span<const int64_t> integers, uint8_t flags, size_t flags_at,
                  std::string* out) {
  // Modulo 2^64: any integers come back.
  const auto difference_at = [&](size_t i) {
    return static_cast<uint64_t>(integers[i + 1]) - static_cast<uint64_t>(integers[i]);
  };
  const size_t count = integers.size() - 1;
  int64_t smallest = INT64_MAX;
  uint64_t any = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t difference = difference_at(i);
    smallest = std::min(smallest, static_cast<int64_t>(difference));
    any |= difference;
  }
  PutVarint(ZigZag(integers[0]), out);
  if (any == 0) {
    (*out)[flags_at] = static_cast<char>(flags | kFlat);
    return;
  }
  if (smallest > 0) {
    const auto less = static_cast<uint64_t>(smallest);
    PutVarint(less, out);
    PackBlocks(
        count, [&](size_t i) { return difference_at(i) - less; }, out);
    flags |= kAscending;
  } else {
    PackBlocks(
        count, [&](size_t i) { return ZigZag(static_cast<int64_t>(difference_at(i))); }, out);
  }
  (*out)[flags_at] = static_cast<char>(flags);
}

void EncodeXor(std::span<const double> values, std::string* out) {
  const auto change_at = [&](size_t i) {
    return std::bit_cast<uint64_t>(values[i + 1]) ^ std::bit_cast<uint64_t>(values[i]);
  };
  uint64_t any = 0;
  for (size_t i = 0; i + 1 < values.size(); ++i) any |= change_at(i);
  const auto shift = static_cast<unsigned>(std::countr_zero(any));
  PutLe64(std::bit_cast<uint64_t>(values[0]), out);
  out->push_back(static_cast<char>(shift));
  PackBlocks(
      values.size() - 1, [&](size_t i) { return change_at(i) >> shift; }, out);
}

bool AreSame(std::span<const double> values) {
  uint64_t any = 0;
  for (const double value : values) {
    any |= std::bit_cast<uint64_t>(value) ^ std::bit_cast<uint64_t>(values[0]);
  }
  return any == 0;
}

void DecodeScaled(uint8_t flags, absl::string_view bytes, std::span<double> out) {
  const double power = kPowersOfTen[flags >> kExponentShift];
  ByteReader in(bytes);
  auto integer = static_cast<uint64_t>(UnZigZag(in.Varint()));
  const auto value = [&] { return static_cast<double>(static_cast<int64_t>(integer)) / power; };
  out[0] = value();
  if ((flags & kFlat) != 0) return std::fill(out.begin(), out.end(), out[0]);
  double* next = out.data();
  if ((flags & kAscending) != 0) {
    const uint64_t smallest = in.Varint();
    UnpackBlocks(in.rest().data(), out.size() - 1, [&](uint64_t difference) {
      integer += difference + smallest;
      *++next = value();
    });
  } else {
    UnpackBlocks(in.rest().data(), out.size() - 1, [&](uint64_t difference) {
      integer += static_cast<uint64_t>(UnZigZag(difference));
      *++next = value();
    });
  }
}

void DecodePresent(uint8_t flags, absl::string_view bytes, std::span<double> out) {
  if ((flags & kModeMask) == kIntegers) return DecodeScaled(flags, bytes, out);
  uint64_t bits = Load(bytes.data());
  std::fill(out.begin(), out.end(), std::bit_cast<double>(bits));
  if ((flags & kModeMask) == kConstant) return;
  const auto shift = static_cast<uint8_t>(bytes[sizeof(bits)]);
  double* next = out.data();
  UnpackBlocks(bytes.data() + sizeof(bits) + 1, out.size() - 1, [&](uint64_t change) {
    bits ^= change << shift;
    *++next = std::bit_cast<double>(bits);
  });
}

}  // namespace

void OpenEncoder::EncodeValues(std::span<const double> values, std::string* out) {
  const size_t flags_at = out->size();
  out->push_back(0);
  size_t missing = 0;
  for (const double value : values) missing += IsStaleMarker(value) ? 1 : 0;
  if (missing == 0 || missing == values.size()) return EncodePresent(values, 0, flags_at, out);
  out->resize(out->size() + (values.size() + 7) / 8);
  present_.clear();
  for (size_t i = 0; i < values.size(); ++i) {
    if (IsStaleMarker(values[i])) continue;
    char& byte = (*out)[flags_at + 1 + i / 8];
    byte = static_cast<char>(byte | 1 << i % 8);
    present_.push_back(values[i]);
  }
  EncodePresent(present_, kMissing, flags_at, out);
}

void OpenEncoder::EncodePresent(std::span<const double> values, uint8_t flags, size_t flags_at,
                                std::string* out) {
  TACHO_CHECK(!values.empty());
  integers_.resize(values.size());
  const unsigned e = ScaleAll(values, integers_);
  if (e < kPowersOfTen.size()) {
    flags |= static_cast<uint8_t>(kIntegers | e << kExponentShift);
    return EncodeScaled(integers_, flags, flags_at, out);
  }
  if (AreSame(values)) {
    (*out)[flags_at] = static_cast<char>(flags | kConstant);
    return PutLe64(std::bit_cast<uint64_t>(values[0]), out);
  }
  (*out)[flags_at] = static_cast<char>(flags | kXor);
  EncodeXor(values, out);
}

void OpenEncoder::EncodeIntegers(std::span<const int64_t> integers, std::string* out) {
  TACHO_CHECK(!integers.empty());
  const size_t flags_at = out->size();
  out->push_back(0);
  EncodeScaled(integers, kIntegers, flags_at, out);
}

void DecodeOpenValues(absl::string_view bytes, std::span<double> out) {
  TACHO_CHECK(!bytes.empty() && !out.empty());
  const auto flags = static_cast<uint8_t>(bytes[0]);
  bytes.remove_prefix(1);
  if ((flags & kMissing) == 0) return DecodePresent(flags, bytes, out);
  const absl::string_view bitmap = bytes.substr(0, (out.size() + 7) / 8);
  bytes.remove_prefix(bitmap.size());
  size_t count = 0;
  for (const char byte : bitmap) {
    count += static_cast<size_t>(std::popcount(static_cast<uint8_t>(byte)));
  }
  TACHO_CHECK(count > 0 && count < out.size());
  std::vector<double> present(count);
  DecodePresent(flags, bytes, present);
  const double* next = present.data();
  for (size_t i = 0; i < out.size(); ++i) {
    const bool there = (static_cast<uint8_t>(bitmap[i / 8]) >> i % 8 & 1) != 0;
    out[i] = there ? *next++ : StaleMarker();
  }
}

void DecodeOpenIntegers(absl::string_view bytes, std::span<int64_t> out) {
  TACHO_CHECK(!bytes.empty() && !out.empty());
  const auto flags = static_cast<uint8_t>(bytes[0]);
  ByteReader in(bytes.substr(1));
  auto integer = static_cast<uint64_t>(UnZigZag(in.Varint()));
  std::fill(out.begin(), out.end(), static_cast<int64_t>(integer));
  if ((flags & kFlat) != 0) return;
  const bool ascending = (flags & kAscending) != 0;
  const uint64_t smallest = ascending ? in.Varint() : 0;
  int64_t* next = out.data();
  UnpackBlocks(in.rest().data(), out.size() - 1, [&](uint64_t difference) {
    integer += ascending ? difference + smallest : static_cast<uint64_t>(UnZigZag(difference));
    *++next = static_cast<int64_t>(integer);
  });
}

}  // namespace tacho::storage
