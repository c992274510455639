// Tokens (small numbers) in about as many bits as their frequencies say: table-driven asymmetric
// numeral systems (tANS). docs/storage_format.md describes the bits.
//
// A decoder in state x looks up the token of that state, the state's base and a number of bits,
// and goes to base + those bits. Tokens are dealt to kStates states in turn, because a processor
// does four look-ups in the time of one. The encoder goes backwards, from the last token with all
// states 0 to the first, so a decoder that does not end with all states 0 read damaged bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/codec/bit_stream.h"

namespace tacho::storage {

constexpr size_t kTokens = 128;
constexpr unsigned kMaxTableBits = 10;

using TokenCounts = std::array<uint32_t, kTokens>;

// How often tokens occur: those from `end` on do not, and what `counts` holds of them means
// nothing.
struct Occurrences {
  size_t total = 0;
  size_t end = 0;
  TokenCounts counts;
};

// How often each token is expected: counts that add up to 2^bits.
struct TokenTable {
  unsigned bits = 0;
  // The tokens that may have a count; what `counts` holds of others means nothing.
  size_t first = 0;
  size_t last = 0;
  TokenCounts counts;

  // For tokens that occur this often in all; at least one must. Every token that occurs gets a
  // count.
  static TokenTable Of(const Occurrences& occurrences);
  void Write(BitWriter* out) const;
  // False if there is no such table.
  bool Read(BitReader* in);
};

// Bits that a table and its states take at most.
constexpr size_t kMaxTableSize = kTokens * 34 + 64;

// Writes tokens that all have a count, kMaxTableBits each at most.
void WriteTokens(std::span<const uint8_t> tokens, const TokenTable& table, BitWriter* out);
bool ReadTokens(const TokenTable& table, BitReader* from, std::span<uint8_t> tokens);

}  // namespace tacho::storage
