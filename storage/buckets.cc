#include "storage/buckets.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "storage/scratch.h"

namespace tacho::storage {
namespace {

constexpr unsigned kShiftBits = 6;

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
constexpr auto kProducts = [] {
  std::array<int32_t, 256> products = {};
  for (uint32_t i = 0; i < products.size(); ++i) products[i] = static_cast<int32_t>(Product(i));
  return products;
}();
int64_t Information(uint32_t count) {
  return count < kProducts.size() ? kProducts[count] : Product(count);
}

unsigned Width(unsigned token, unsigned shift) { return token < 2 ? shift : token / 2 - 1 + shift; }

uint64_t Begin(unsigned token, unsigned shift) {
  return token < 2 ? uint64_t{token} << shift : uint64_t{2 + token % 2} << Width(token, shift);
}

bool AllFit(const TokenTable& table, unsigned shift) {
  for (unsigned token = 2; token <= table.last; ++token) {
    if (table.counts[token] > 0 && Width(token, shift) > 62) return false;
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
  // Tokens up to `last` occur.
  Buckets(size_t last, unsigned shift) {
    for (unsigned token = 0; token <= last; ++token) {
      begins[token] = Begin(token, shift);
      widths[token] = static_cast<uint8_t>(Width(token, shift));
    }
    widest = widths[last];
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

template <bool kWide>
bool Unpack(unsigned width, BitReader* from, std::span<uint64_t> numbers) {
  BitReader in = *from;
  for (size_t begin = 0; begin < numbers.size(); begin += 8) {
    for (uint64_t& number : numbers.subspan(begin, std::min<size_t>(8, numbers.size() - begin))) {
      number = kWide ? in.ReadWide(width) : in.Read(width);
    }
    if (!in.ok()) return false;
  }
  *from = in;
  return true;
}

TACHO_ALWAYS_INLINE void MakeTokensInto(std::span<const uint64_t> numbers, uint8_t* tokens,
                                        TokenCounts* even, TokenCounts* odd) {
  size_t i = 0;
  for (; i + 1 < numbers.size(); i += 2) {
    const unsigned first = BucketToken(numbers[i]);
    const unsigned second = BucketToken(numbers[i + 1]);
    tokens[i] = static_cast<uint8_t>(first);
    tokens[i + 1] = static_cast<uint8_t>(second);
    ++(*even)[first];
    ++(*odd)[second];
  }
  if (i < numbers.size()) {
    tokens[i] = static_cast<uint8_t>(BucketToken(numbers[i]));
    ++(*even)[tokens[i]];
  }
}

TACHO_TARGET_BMI2 void MakeTokensBmi2(std::span<const uint64_t> numbers, uint8_t* tokens,
                                      TokenCounts* even, TokenCounts* odd) {
  MakeTokensInto(numbers, tokens, even, odd);
}

}  // namespace

TokenCounts MakeTokens(std::span<const uint64_t> numbers, uint8_t* tokens) {
  // Two tables, so that equal neighbours do not wait for each other; of few numbers the second is
  // not worth its zeros.
  constexpr size_t kFew = 128;
  TokenCounts counts = {};
  const auto make = [&](TokenCounts* odd) {
    if (HasBmi2()) {
      MakeTokensBmi2(numbers, tokens, &counts, odd);
    } else {
      MakeTokensInto(numbers, tokens, &counts, odd);
    }
  };
  if (numbers.size() < kFew) {
    make(&counts);
    return counts;
  }
  TokenCounts odd = {};
  make(&odd);
  for (size_t token = 0; token < kTokens; ++token) counts[token] += odd[token];
  return counts;
}

BucketPlan BucketPlan::Of(const TokenCounts& tokens) {
  // What a table costs: itself, and each of its counts.
  constexpr int64_t kTable = 40 * kParts;
  constexpr int64_t kCount = 11 * kParts / 2;
  unsigned top = kTokens - 1;
  while (top > 0 && tokens[top] == 0) --top;
  uint32_t total = 0;
  int64_t known = 0;    // total * log2(total) less this is the information in the tokens.
  int64_t offsets = 0;  // Bits that say where in its bucket each number is.
  int64_t used = 0;
  for (unsigned token = 0; token <= top; ++token) {
    total += tokens[token];
    known += Information(tokens[token]);
    offsets += int64_t{tokens[token]} * Width(token, 0);
    used += tokens[token] > 0 ? 1 : 0;
  }
  const int64_t all = Information(total);
  // All in as many bits as the largest takes, and no tokens.
  const unsigned most = top < 2 ? top : top / 2 + 1;
  BucketPlan best = {most, top, true, 0, 0};
  int64_t best_numbers = int64_t{total} * most * kParts;
  int64_t best_table = most > 0 ? 8 * kParts : 0;
  // Tokens below 4 under the shift; all higher ones are as they were.
  std::array<uint32_t, 4> low = {tokens[0], tokens[1], tokens[2], tokens[3]};
  for (unsigned shift = 0; shift < most; ++shift) {
    const int64_t table = kTable + kCount * used;
    const int64_t numbers = all - known + offsets * kParts;
    // Wider buckets tell less by tokens: numbers never get cheaper.
    if (numbers >= best_numbers + best_table) break;
    if (numbers + table < best_numbers + best_table) {
      best_numbers = numbers;
      best_table = table;
      best.shift = shift;
      best.packed = false;
    }
    const unsigned next = 4 + 2 * shift;
    const uint32_t above = next < kTokens ? tokens[next] : 0;
    const uint32_t above_that = next + 1 < kTokens ? tokens[next + 1] : 0;
    if ((low[0] | low[1] | low[2] | low[3]) != 0) {
      for (const uint32_t count : low) {
        known -= Information(count);
        offsets += count;
        used -= count > 0 ? 1 : 0;
      }
      low[0] += low[1];
      low[1] = low[2] + low[3];
      for (const uint32_t count : {low[0], low[1]}) {
        known += Information(count);
        used += count > 0 ? 1 : 0;
      }
    }
    low[2] = above;
    low[3] = above_that;
  }
  best.number_bits = static_cast<double>(best_numbers) / kParts;
  best.table_bits = static_cast<double>(best_table) / kParts;
  return best;
}

void WriteBuckets(std::span<const uint64_t> numbers, const TokenCounts& counts,
                  const BucketPlan& plan, std::span<uint8_t> tokens, std::string* out) {
  const unsigned shift = plan.shift;
  if (plan.packed) {
    out->push_back(static_cast<char>(shift));
    BitWriter writer(numbers.size() * shift, out);
    for (const uint64_t number : numbers) writer.WriteWide(number, shift);
    writer.Finish();
    return;
  }
  if (shift > 0) {
    std::array<uint8_t, kTokens> shifted;
    for (unsigned token = 0; token < kTokens; ++token) shifted[token] = Shifted(token, shift);
    for (uint8_t& token : tokens) token = shifted[token];
  }
  TokenCounts shifted = {};
  for (unsigned token = 0; token < kTokens; ++token)
    shifted[Shifted(token, shift)] += counts[token];
  const TokenTable table = TokenTable::Of(shifted);
  const Buckets buckets(table.last, shift);
  size_t max_bits = kShiftBits + kMaxTableSize + numbers.size() * kMaxTableBits;
  for (size_t token = table.first; token <= table.last; ++token) {
    max_bits += size_t{shifted[token]} * buckets.widths[token];
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
    if (!(width > kMaxBitsAtOnce ? Unpack<true>(width, &bits, numbers)
                                 : Unpack<false>(width, &bits, numbers))) {
      return false;
    }
    in->Bytes(bits.BytesRead());
    return in->ok();
  }
  BitReader bits(in->rest());
  const auto shift = static_cast<unsigned>(bits.Read(kShiftBits));
  TokenTable table;
  if (!table.Read(&bits) || !AllFit(table, shift)) return false;
  Scratch<uint8_t> tokens(numbers.size());
  if (!ReadTokens(table, &bits, tokens.span())) return false;
  if (!ReadAllOffsets(tokens.span(), Buckets(table.last, shift), &bits, numbers.data())) {
    return false;
  }
  in->Bytes(bits.BytesRead());
  return in->ok();
}

}  // namespace tacho::storage
