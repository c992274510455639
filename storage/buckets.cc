#include "storage/buckets.h"

#include <algorithm>
#include <bit>
#include <vector>

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

// count * log2(count).
constexpr double Product(uint32_t count) {
  return count < 2 ? 0 : count * QuickLog2(static_cast<double>(count));
}
constexpr auto kProducts = [] {
  std::array<float, 256> products = {};
  for (uint32_t i = 0; i < products.size(); ++i) products[i] = static_cast<float>(Product(i));
  return products;
}();
double Information(uint32_t count) {
  return count < kProducts.size() ? static_cast<double>(kProducts[count]) : Product(count);
}

unsigned Width(unsigned token, unsigned shift) { return token < 2 ? shift : token / 2 - 1 + shift; }

uint64_t Begin(unsigned token, unsigned shift) {
  return token < 2 ? uint64_t{token} << shift : uint64_t{2 + token % 2} << Width(token, shift);
}

bool AllFit(const TokenTable& table, unsigned shift) {
  for (unsigned token = 2; token < kTokens; ++token) {
    if (table.counts[token] > 0 && Width(token, shift) > 62) return false;
  }
  return true;
}

// The tokens that numbers have under a shift, from those that they have without: each step makes
// one of the first two, one of the next two, and moves all others down.
TokenCounts Shifted(const TokenCounts& tokens, unsigned shift) {
  TokenCounts shifted = {};
  for (unsigned token = 0; token < kTokens; ++token) {
    unsigned t = token;
    for (unsigned i = 0; i < shift && t > 0; ++i) t = t < 4 ? t / 2 : t - 2;
    shifted[t] += tokens[token];
  }
  return shifted;
}

template <bool kWide>
TACHO_ALWAYS_INLINE bool ReadOffsets(std::span<const uint8_t> tokens, unsigned shift,
                                     BitReader* from, uint64_t* out) {
  // A copy, which the compiler knows that no write to a number changes.
  BitReader in = *from;
  struct Bucket {
    uint64_t begin;
    uint64_t mask;
    uint64_t width;
  };
  std::array<Bucket, kTokens> buckets;
  const unsigned top = tokens.empty() ? 0 : *std::max_element(tokens.begin(), tokens.end());
  for (unsigned token = 0; token <= top; ++token) {
    const unsigned width = Width(token, shift);
    buckets[token] = {Begin(token, shift), LowBits(width), width};
  }
  for (size_t begin = 0; begin < tokens.size(); begin += 8) {
    const size_t end = std::min(begin + 8, tokens.size());
    for (size_t i = begin; i < end; ++i) {
      const Bucket& bucket = buckets[tokens[i]];
      if constexpr (kWide) {
        out[i] = bucket.begin + in.ReadWide(static_cast<unsigned>(bucket.width));
      } else {
        out[i] = bucket.begin + (in.Peek() & bucket.mask);
        in.Skip(bucket.width);
      }
    }
    if (!in.ok()) return false;
  }
  *from = in;
  return true;
}

TACHO_TARGET_BMI2 bool ReadOffsetsBmi2(std::span<const uint8_t> tokens, unsigned shift,
                                       BitReader* from, uint64_t* out) {
  return ReadOffsets<false>(tokens, shift, from, out);
}

bool ReadAllOffsets(std::span<const uint8_t> tokens, unsigned shift, unsigned widest,
                    BitReader* from, uint64_t* out) {
  if (widest > kMaxBitsAtOnce) return ReadOffsets<true>(tokens, shift, from, out);
  return HasBmi2() ? ReadOffsetsBmi2(tokens, shift, from, out)
                   : ReadOffsets<false>(tokens, shift, from, out);
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

}  // namespace

BucketPlan BucketPlan::Of(const TokenCounts& tokens) {
  // What a table costs: itself, and each of its counts.
  constexpr double kTable = 40;
  constexpr double kCount = 5.5;
  unsigned top = kTokens - 1;
  while (top > 0 && tokens[top] == 0) --top;
  double total = 0;
  double known = 0;    // total * log2(total) less this is the information in the tokens.
  double offsets = 0;  // Bits that say where in its bucket each number is.
  unsigned used = 0;
  for (unsigned token = 0; token <= top; ++token) {
    total += tokens[token];
    known += Information(tokens[token]);
    offsets += static_cast<double>(tokens[token]) * Width(token, 0);
    used += tokens[token] > 0 ? 1 : 0;
  }
  const double all = total * QuickLog2(total);
  // All in as many bits as the largest takes, and no tokens.
  const unsigned most = top < 2 ? top : top / 2 + 1;
  BucketPlan best = {most, true, total * most, most > 0 ? 8.0 : 0.0};
  double best_bits = best.number_bits + best.table_bits;
  // Tokens below 4 under the shift; all higher ones are as they were.
  std::array<uint32_t, 4> low = {tokens[0], tokens[1], tokens[2], tokens[3]};
  for (unsigned shift = 0; shift < most; ++shift) {
    const double table = kTable + kCount * used;
    const double numbers = all - known + offsets;
    // Wider buckets tell less by tokens: numbers never get cheaper.
    if (numbers >= best_bits) break;
    if (numbers + table < best_bits) {
      best_bits = numbers + table;
      best = {shift, false, numbers, table};
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
  return best;
}

void WriteBuckets(std::span<const uint64_t> numbers, const TokenCounts& tokens,
                  const BucketPlan& plan, std::string* out) {
  const unsigned shift = plan.shift;
  if (plan.packed) {
    out->push_back(static_cast<char>(shift));
    BitWriter writer(numbers.size() * shift, out);
    for (const uint64_t number : numbers) writer.WriteWide(number, shift);
    writer.Finish();
    return;
  }
  const TokenCounts shifted = Shifted(tokens, shift);
  size_t max_bits = kShiftBits + kMaxTableSize + numbers.size() * kMaxTableBits;
  for (unsigned token = 0; token < kTokens; ++token) {
    max_bits += size_t{shifted[token]} * Width(token, shift);
  }
  BitWriter writer(max_bits, out);
  writer.Write(shift, kShiftBits);
  const TokenTable table = TokenTable::Of(shifted);
  table.Write(&writer);
  std::vector<uint8_t> column(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    column[i] = static_cast<uint8_t>(BucketToken(numbers[i] >> shift));
  }
  WriteTokens(column, table, &writer);
  std::array<unsigned, kTokens> widths;
  for (unsigned token = 0; token < kTokens; ++token) widths[token] = Width(token, shift);
  const unsigned top = *std::max_element(column.begin(), column.end());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const unsigned width = widths[column[i]];
    if (widths[top] <= kMaxBitsAtOnce) {
      writer.Write(numbers[i] & FewBits(width), width);
    } else {
      writer.WriteWide(numbers[i] & LowBits(width), width);
    }
  }
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
  std::vector<uint8_t> tokens(numbers.size());
  if (!ReadTokens(table, &bits, tokens)) return false;
  const unsigned widest = Width(static_cast<unsigned>(table.last), shift);
  if (!ReadAllOffsets(tokens, shift, widest, &bits, numbers.data())) return false;
  in->Bytes(bits.BytesRead());
  return in->ok();
}

}  // namespace tacho::storage
