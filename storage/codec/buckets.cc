// Plans the buckets of a column, then writes or reads its numbers as tokens and offsets. The plan
// estimates the cost of each shift from how often tokens occur, which is cheaper than trying them.
#include "storage/codec/buckets.h"

#include <algorithm>
#include <array>
#include <bit>

#include "storage/codec/bit_stream.h"

namespace tacho::storage {
namespace {

constexpr unsigned kShiftBits = 6;

// The first number of a bucket; any number if the bucket is too wide for anything to be in it.
uint64_t Begin(unsigned token, unsigned shift) {
  const uint64_t first = token < 2 ? token : 2 + token % 2;
  return first << (BucketWidth(token, shift) & 63);
}

bool AllFit(const TokenTable& table, unsigned shift) {
  // The highest token has the widest bucket.
  if (BucketWidth(static_cast<unsigned>(table.last), shift) <= 62) return true;
  for (auto token = static_cast<unsigned>(std::max<size_t>(2, table.first)); token <= table.last;
       ++token) {
    if (table.counts[token] > 0 && BucketWidth(token, shift) > 62) return false;
  }
  return true;
}

// The token that numbers have under a shift, from that without: each step makes one of the first
// two, one of the next two, and moves all others down.
uint8_t Shifted(unsigned token, unsigned shift) {
  const unsigned down = token < 4 ? 0 : std::min(shift, token / 2 - 1);
  const unsigned left = shift - down;
  token -= 2 * down;
  return static_cast<uint8_t>(left > 1 ? 0 : token >> left);
}

// Where the buckets of a column are. What of them is not written is not read.
struct Buckets {
  // Fills in the buckets of the table's tokens.
  Buckets(const TokenTable& table, unsigned shift) {
    for (size_t token = table.first; token <= table.last; ++token) {
      begins[token] = Begin(static_cast<unsigned>(token), shift);
      widths[token] = static_cast<uint8_t>(BucketWidth(static_cast<unsigned>(token), shift));
    }
    widest = widths[table.last];
  }

  std::array<uint64_t, kTokens> begins;
  std::array<uint8_t, kTokens> widths;
  unsigned widest;
};

// Writes the offsets of so many numbers at once.
template <size_t kAtOnce>
TACHO_ALWAYS_INLINE void WriteOffsets(std::span<const uint64_t> numbers, const uint8_t* tokens,
                                      const Buckets& buckets, BitWriter* out) {
  BitWriter writer = *out;
  size_t i = 0;
  for (; i + kAtOnce <= numbers.size(); i += kAtOnce) {
    uint64_t bits = 0;
    uint64_t count = 0;
    for (size_t k = i; k < i + kAtOnce; ++k) {
      const uint64_t width = buckets.widths[tokens[k]];
      bits |= (numbers[k] & FewBits(width)) << count;
      count += width;
    }
    writer.Write(bits, static_cast<unsigned>(count));
  }
  for (; i < numbers.size(); ++i) {
    const unsigned width = buckets.widths[tokens[i]];
    writer.WriteWide(numbers[i] & LowBits(width), width);
  }
  *out = writer;
}

TACHO_ALWAYS_INLINE void WriteNarrowOffsets(std::span<const uint64_t> numbers,
                                            const uint8_t* tokens, const Buckets& buckets,
                                            BitWriter* out) {
  if (4 * buckets.widest <= kMaxBitsAtOnce) return WriteOffsets<4>(numbers, tokens, buckets, out);
  if (2 * buckets.widest <= kMaxBitsAtOnce) return WriteOffsets<2>(numbers, tokens, buckets, out);
  WriteOffsets<1>(numbers, tokens, buckets, out);
}

TACHO_TARGET_BMI2 void WriteOffsetsBmi2(std::span<const uint64_t> numbers, const uint8_t* tokens,
                                        const Buckets& buckets, BitWriter* out) {
  WriteNarrowOffsets(numbers, tokens, buckets, out);
}

void WriteAllOffsets(std::span<const uint64_t> numbers, std::span<const uint8_t> tokens,
                     const Buckets& buckets, BitWriter* out) {
  if (buckets.widest == 0) return;
  if (buckets.widest > kMaxBitsAtOnce) {
    // None at once: the loop for those that are left over writes them all.
    return WriteOffsets<SIZE_MAX>(numbers, tokens.data(), buckets, out);
  }
  if (HasBmi2()) return WriteOffsetsBmi2(numbers, tokens.data(), buckets, out);
  WriteNarrowOffsets(numbers, tokens.data(), buckets, out);
}

// Reads the offsets of so many numbers by bits that are looked at once.
template <size_t kAtOnce>
TACHO_ALWAYS_INLINE bool ReadOffsets(std::span<const uint8_t> tokens, const Buckets& buckets,
                                     BitReader* from, uint64_t* out) {
  // A copy, which the compiler knows that no write to a number changes.
  BitReader in = *from;
  size_t i = 0;
  for (; i + kAtOnce <= tokens.size(); i += kAtOnce) {
    uint64_t waiting = in.Peek();
    uint64_t taken = 0;
    for (size_t k = i; k < i + kAtOnce; ++k) {
      const uint64_t width = buckets.widths[tokens[k]];
      out[k] = buckets.begins[tokens[k]] + (waiting & FewBits(width));
      waiting >>= width;
      taken += width;
    }
    in.Skip(taken);
    if (!in.ok()) return false;
  }
  for (; i < tokens.size(); ++i) {
    const unsigned width = buckets.widths[tokens[i]];
    out[i] = buckets.begins[tokens[i]] + in.ReadWide(width);
    if (!in.ok()) return false;
  }
  *from = in;
  return true;
}

TACHO_ALWAYS_INLINE bool ReadNarrowOffsets(std::span<const uint8_t> tokens, const Buckets& buckets,
                                           BitReader* from, uint64_t* out) {
  if (4 * buckets.widest <= kMaxBitsAtOnce) return ReadOffsets<4>(tokens, buckets, from, out);
  if (2 * buckets.widest <= kMaxBitsAtOnce) return ReadOffsets<2>(tokens, buckets, from, out);
  return ReadOffsets<1>(tokens, buckets, from, out);
}

TACHO_TARGET_BMI2 bool ReadOffsetsBmi2(std::span<const uint8_t> tokens, const Buckets& buckets,
                                       BitReader* from, uint64_t* out) {
  return ReadNarrowOffsets(tokens, buckets, from, out);
}

bool ReadAllOffsets(std::span<const uint8_t> tokens, const Buckets& buckets, BitReader* from,
                    uint64_t* out) {
  if (buckets.widest == 0) {
    for (size_t i = 0; i < tokens.size(); ++i) out[i] = buckets.begins[tokens[i]];
    return true;
  }
  if (buckets.widest > kMaxBitsAtOnce) {
    // None at once: the loop for those that are left over reads them all.
    return ReadOffsets<SIZE_MAX>(tokens, buckets, from, out);
  }
  return HasBmi2() ? ReadOffsetsBmi2(tokens, buckets, from, out)
                   : ReadNarrowOffsets(tokens, buckets, from, out);
}

// Reads numbers of so many bits; kAtOnce of them come to kMaxBitsAtOnce at most.
template <size_t kAtOnce>
TACHO_ALWAYS_INLINE bool Unpack(unsigned width, BitReader* from, std::span<uint64_t> numbers) {
  BitReader in = *from;
  size_t i = 0;
  for (; i + kAtOnce <= numbers.size(); i += kAtOnce) {
    uint64_t waiting = in.Peek();
    for (size_t k = i; k < i + kAtOnce; ++k) {
      numbers[k] = waiting & FewBits(width);
      waiting >>= width;
    }
    in.Skip(kAtOnce * width);
    if (!in.ok()) return false;
  }
  for (; i < numbers.size(); ++i) {
    numbers[i] = in.ReadWide(width);
    if (!in.ok()) return false;
  }
  *from = in;
  return true;
}

TACHO_ALWAYS_INLINE bool UnpackNarrow(unsigned width, BitReader* from,
                                      std::span<uint64_t> numbers) {
  if (8 * width <= kMaxBitsAtOnce) return Unpack<8>(width, from, numbers);
  if (4 * width <= kMaxBitsAtOnce) return Unpack<4>(width, from, numbers);
  return Unpack<1>(width, from, numbers);
}

TACHO_TARGET_BMI2 bool UnpackBmi2(unsigned width, BitReader* from, std::span<uint64_t> numbers) {
  return UnpackNarrow(width, from, numbers);
}

bool UnpackAll(unsigned width, BitReader* from, std::span<uint64_t> numbers) {
  // None at once: the loop for those that are left over reads them all.
  if (width > kMaxBitsAtOnce) return Unpack<SIZE_MAX>(width, from, numbers);
  return HasBmi2() ? UnpackBmi2(width, from, numbers) : UnpackNarrow(width, from, numbers);
}

// The tokens, and how often each occurs among numbers in even places and in odd ones.
TACHO_ALWAYS_INLINE void MakeTokensInto(std::span<const uint64_t> numbers, uint8_t* tokens,
                                        uint32_t* even, uint32_t* odd) {
  size_t i = 0;
  for (; i + 1 < numbers.size(); i += 2) {
    const unsigned first = BucketToken(numbers[i]);
    const unsigned second = BucketToken(numbers[i + 1]);
    tokens[i] = static_cast<uint8_t>(first);
    tokens[i + 1] = static_cast<uint8_t>(second);
    ++even[first];
    ++odd[second];
  }
  if (i < numbers.size()) {
    tokens[i] = static_cast<uint8_t>(BucketToken(numbers[i]));
    ++even[tokens[i]];
  }
}

TACHO_TARGET_BMI2 void MakeTokensBmi2(std::span<const uint64_t> numbers, uint8_t* tokens,
                                      uint32_t* even, uint32_t* odd) {
  MakeTokensInto(numbers, tokens, even, odd);
}

// log2 to about a hundredth: costs are compared, not counted.
constexpr double QuickLog2(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto exponent = static_cast<double>(static_cast<int>(bits >> 52) - 1023);
  const double mantissa =
      std::bit_cast<double>((bits & LowBits(52)) | std::bit_cast<uint64_t>(1.0)) - 1;
  return exponent + mantissa * (1.3465 - 0.3465 * mantissa);
}

// Information is counted in so many parts of a bit.
constexpr int64_t kParts = 256;

// count * log2(count).
constexpr int64_t Product(uint32_t count) {
  return count < 2 ? 0 : static_cast<int64_t>(count * kParts * QuickLog2(count));
}
constexpr size_t kFewOccurrences = 1024;
constexpr auto kProducts = [] {
  std::array<int32_t, kFewOccurrences + 1> products = {};
  for (uint32_t i = 0; i < products.size(); ++i) products[i] = static_cast<int32_t>(Product(i));
  return products;
}();
template <bool kFew>
int64_t Information(size_t count) {
  if constexpr (kFew) return kProducts[count];
  return count < kProducts.size() ? kProducts[count] : Product(static_cast<uint32_t>(count));
}

// kFew: their total is at most kFewOccurrences.
template <bool kFew>
BucketPlan PlanBuckets(const Occurrences& tokens) {
  // What a table costs: itself, and each of its counts.
  constexpr int64_t kTable = 40 * kParts;
  constexpr int64_t kCount = 11 * kParts / 2;
  const auto end = static_cast<unsigned>(tokens.end);
  const auto count_of = [&](unsigned token) { return token < end ? tokens.counts[token] : 0; };
  const auto total = static_cast<int64_t>(tokens.total);
  int64_t known = 0;    // total * log2(total) less this is the information in the tokens.
  int64_t offsets = 0;  // Bits that say where in its bucket each number is.
  int64_t used = 0;
  for (unsigned token = 0; token < end; token += 2) {
    const uint32_t even = tokens.counts[token];
    const uint32_t odd = tokens.counts[token + 1];
    known += Information<kFew>(even) + Information<kFew>(odd);
    // Two to a width; the first two have 0 bits, for which this takes one too few.
    offsets += (int64_t{even} + odd) * (static_cast<int64_t>(token / 2) - 1);
    used += (even > 0 ? 1 : 0) + (odd > 0 ? 1 : 0);
  }
  offsets += int64_t{tokens.counts[0]} + tokens.counts[1];
  const int64_t all = Information<kFew>(tokens.total);
  const unsigned top = tokens.counts[end - 1] > 0 ? end - 1 : end - 2;
  // All in as many bits as the largest takes, and no tokens.
  const unsigned most = top < 2 ? top : top / 2 + 1;
  BucketPlan best = {most, true, 0, 0};
  int64_t best_numbers = total * most * kParts;
  int64_t best_table = most > 0 ? 8 * kParts : 0;
  // Tokens below 4 under the shift; all higher ones are as they were.
  std::array<uint32_t, 4> low = {count_of(0), count_of(1), count_of(2), count_of(3)};
  for (unsigned shift = 0; shift < most; ++shift) {
    const int64_t table = kTable + kCount * used;
    const int64_t numbers = all - known + offsets * kParts;
    // Tokens of wider buckets say less about their numbers, which never get cheaper.
    if (numbers + kTable + kCount >= best_numbers + best_table) break;
    if (numbers + table < best_numbers + best_table) {
      best_numbers = numbers;
      best_table = table;
      best.shift = shift;
      best.packed = false;
    }
    if ((low[0] | low[1] | low[2] | low[3]) != 0) {
      for (const uint32_t count : low) {
        known -= Information<kFew>(count);
        offsets += count;
        used -= count > 0 ? 1 : 0;
      }
      low[0] += low[1];
      low[1] = low[2] + low[3];
      for (const uint32_t count : {low[0], low[1]}) {
        known += Information<kFew>(count);
        used += count > 0 ? 1 : 0;
      }
    }
    const unsigned next = 4 + 2 * shift;
    low[2] = count_of(next);
    low[3] = count_of(next + 1);
  }
  best.number_bits = static_cast<double>(best_numbers) / kParts;
  best.table_bits = static_cast<double>(best_table) / kParts;
  return best;
}

}  // namespace

Occurrences MakeTokens(std::span<const uint64_t> numbers, uint8_t* tokens) {
  uint64_t any = 0;
  for (const uint64_t number : numbers) any |= number;
  Occurrences occurrences;
  // The largest number has as many bits as all of them together.
  occurrences.end = (BucketToken(any) | 1) + 1;
  occurrences.total = numbers.size();
  // Two tables, so that equal neighbours do not wait for each other; of few numbers the second is
  // not worth its zeros.
  constexpr size_t kFew = 128;
  TokenCounts second;
  uint32_t* const even = occurrences.counts.data();
  uint32_t* const odd = numbers.size() < kFew ? even : second.data();
  std::fill_n(even, occurrences.end, 0);
  if (odd != even) std::fill_n(odd, occurrences.end, 0);
  if (HasBmi2()) {
    MakeTokensBmi2(numbers, tokens, even, odd);
  } else {
    MakeTokensInto(numbers, tokens, even, odd);
  }
  if (odd != even) {
    for (size_t token = 0; token < occurrences.end; ++token) even[token] += odd[token];
  }
  return occurrences;
}

void WriteBuckets(std::span<const uint64_t> numbers, const Occurrences& occurrences,
                  const BucketPlan& plan, std::span<uint8_t> tokens, std::string* out) {
  const unsigned shift = plan.shift;
  if (plan.packed) {
    out->push_back(static_cast<char>(shift));
    BitWriter writer(numbers.size() * shift, out);
    for (const uint64_t number : numbers) writer.WriteWide(number, shift);
    writer.Finish();
    return;
  }
  Occurrences shifted = occurrences;
  if (shift > 0) {
    std::array<uint8_t, kTokens> token_of;
    shifted.end = size_t{Shifted(static_cast<unsigned>(occurrences.end - 1), shift)} + 1;
    std::fill_n(shifted.counts.data(), shifted.end, 0);
    for (unsigned token = 0; token < occurrences.end; ++token) {
      token_of[token] = Shifted(token, shift);
      shifted.counts[token_of[token]] += occurrences.counts[token];
    }
    for (uint8_t& token : tokens) token = token_of[token];
  }
  const TokenTable table = TokenTable::Of(shifted);
  const Buckets buckets(table, shift);
  size_t max_bits = kShiftBits + kMaxTableSize + numbers.size() * kMaxTableBits;
  for (size_t token = table.first; token <= table.last; ++token) {
    max_bits += size_t{shifted.counts[token]} * buckets.widths[token];
  }
  BitWriter writer(max_bits, out);
  writer.Write(shift, kShiftBits);
  table.Write(&writer);
  WriteTokens(tokens, table, &writer);
  WriteAllOffsets(numbers, tokens, buckets, &writer);
  writer.Finish();
}

bool ReadBuckets(bool packed, ByteReader* in, std::span<uint64_t> numbers) {
  if (packed) {
    const unsigned width = in->Byte();
    if (!in->ok() || width > 64) return false;
    BitReader bits(in->rest());
    if (!UnpackAll(width, &bits, numbers)) return false;
    in->Bytes(bits.BytesRead());
    return in->ok();
  }
  BitReader bits(in->rest());
  const auto shift = static_cast<unsigned>(bits.Read(kShiftBits));
  TokenTable table;
  if (!table.Read(&bits) || !AllFit(table, shift)) return false;
  Scratch<uint8_t> tokens(numbers.size());
  if (!ReadTokens(table, &bits, tokens.span())) return false;
  if (!ReadAllOffsets(tokens.span(), Buckets(table, shift), &bits, numbers.data())) {
    return false;
  }
  in->Bytes(bits.BytesRead());
  return in->ok();
}

BucketPlan BucketPlan::Of(const Occurrences& tokens) {
  return tokens.total <= kFewOccurrences ? PlanBuckets<true>(tokens) : PlanBuckets<false>(tokens);
}

}  // namespace tacho::storage
