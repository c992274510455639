// Numbers as tokens that say which bucket a number is in, and bits that say where in the bucket.
//
//   token 0, 1       from token * 2^s on, s bits
//   token t >= 2     from (2 + t % 2) * 2^w on, with w = t / 2 - 1 + s bits
//
// So buckets are wider the larger the numbers are, two to each power of two; s, the shift of the
// column, makes the smallest ones wide enough that tokens do not outnumber what they tell.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "storage/ans.h"

namespace tacho::storage {

inline unsigned BucketToken(uint64_t number) {
  const auto e = static_cast<unsigned>(std::bit_width(number | 1)) - 1;
  return 2 * e + static_cast<unsigned>((2 * number >> e) & 1) + (number == 1 ? 1 : 0);
}

// What numbers cost under the best shift for them.
struct BucketPlan {
  unsigned shift = 0;
  unsigned top = 0;        // The highest token without a shift.
  bool packed = false;     // All of them are below 2^shift and need no tokens.
  double number_bits = 0;  // All numbers together,
  double table_bits = 0;   // and what is written once.

  // For numbers of which so many have each token without a shift; their total must not be 0.
  static BucketPlan Of(const TokenCounts& tokens);
};

// The token of each number without a shift, and how many have it.
TokenCounts MakeTokens(std::span<const uint64_t> numbers, uint8_t* tokens);

// Appends the numbers. Tokens are theirs without a shift, and are changed.
void WriteBuckets(std::span<const uint64_t> numbers, const TokenCounts& counts,
                  const BucketPlan& plan, std::span<uint8_t> tokens, std::string* out);
// Takes numbers off the front of padded bytes (see bit_stream.h); false if they are damaged.
bool ReadBuckets(bool packed, ByteReader* in, std::span<uint64_t> numbers);

}  // namespace tacho::storage
