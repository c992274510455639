// Numbers as tokens that say which bucket a number is in, and bits that say where in the bucket.
//
//   token 0, 1       from token * 2^s on, s bits
//   token t >= 2     from (2 + t % 2) * 2^w on, with w = t / 2 - 1 + s bits
//
// So buckets are wider the larger the numbers are, two to each power of two; s, the shift of the
// column, makes the smallest ones wide enough that there are not more tokens than they describe.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "storage/codec/ans.h"

namespace tacho::storage {

inline unsigned BucketToken(uint64_t number) {
  const unsigned below = 62U - static_cast<unsigned>(__builtin_clzll(number | 2));
  return static_cast<unsigned>(number >> below) + 2 * below;
}

// Bits of an offset in a token's bucket.
inline unsigned BucketWidth(unsigned token, unsigned shift) {
  return token < 2 ? shift : token / 2 - 1 + shift;
}

// What numbers cost under the best shift for them.
struct BucketPlan {
  unsigned shift = 0;
  bool packed = false;     // All numbers are below 2^shift and need no tokens.
  double number_bits = 0;  // All numbers together,
  double table_bits = 0;   // and what is written once.

  // `tokens` counts how many numbers have each token without a shift, as MakeTokens() does; there
  // must be some.
  static BucketPlan Of(const Occurrences& tokens);
};

// The token of each number without a shift, and how many have it.
Occurrences MakeTokens(std::span<const uint64_t> numbers, uint8_t* tokens);

// Appends the numbers. Tokens are theirs without a shift, and are changed.
void WriteBuckets(std::span<const uint64_t> numbers, const Occurrences& occurrences,
                  const BucketPlan& plan, std::span<uint8_t> tokens, std::string* out);
// Takes numbers off the front of padded bytes (see bit_stream.h); false if they are damaged.
bool ReadBuckets(bool packed, ByteReader* in, std::span<uint64_t> numbers);

}  // namespace tacho::storage
