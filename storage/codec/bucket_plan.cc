// Chooses the shift under which numbers take the fewest bits.
#include <algorithm>
#include <array>
#include <bit>

#include "storage/codec/bit_stream.h"
#include "storage/codec/buckets.h"

namespace tacho::storage {
namespace {

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
    // Wider buckets tell less by tokens: numbers never get cheaper.
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

BucketPlan BucketPlan::Of(const Occurrences& tokens) {
  return tokens.total <= kFewOccurrences ? PlanBuckets<true>(tokens) : PlanBuckets<false>(tokens);
}

}  // namespace tacho::storage
