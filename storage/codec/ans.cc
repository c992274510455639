// Writes and reads tables of tokens and the tokens themselves. These loops are most of the time
// that a column takes, so each handles several states at once and is compiled with BMI2 and
// without.
#include "storage/codec/ans.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "storage/codec/bit_stream.h"

namespace tacho::storage {
namespace {

constexpr unsigned kMinTableBits = 5;
constexpr size_t kMaxStates = size_t{1} << kMaxTableBits;
// Columns shorter than this have a single state: each costs a table's bits.
constexpr size_t kManyTokens = 256;

// The number must not be 0.
unsigned Log2(uint32_t value) { return 31U ^ static_cast<unsigned>(__builtin_clz(value)); }

// A step that is odd, and so prime to the size, spreads each token's states over the table.
constexpr uint32_t Step(uint32_t size) { return size / 2 + size / 8 + 3; }

// The inverse of a step modulo a size. Each turn doubles the bits that are right, three at first.
constexpr uint32_t Inverse(uint32_t step, uint32_t size) {
  uint32_t inverse = step;
  for (int bits = 3; bits < static_cast<int>(kMaxTableBits); bits *= 2) {
    inverse *= 2 - step * inverse;
  }
  return inverse & (size - 1);
}

// The tokens in a row, as often as each is expected: number i is that of state i * Step().
class TokenRow {
 public:
  explicit TokenRow(const TokenTable& table) {
    // Eight at once: most tokens have no more, so that no branch is to be guessed.
    size_t end = 0;
    for (size_t token = table.first; token <= table.last; ++token) {
      const uint64_t eight = token * 0x0101010101010101;
      for (size_t i = 0; i < table.counts[token]; i += 8) {
        std::memcpy(row_.data() + end + i, &eight, sizeof(eight));
      }
      end += table.counts[token];
    }
  }
  uint8_t operator[](size_t i) const { return row_[i]; }

 private:
  std::array<uint8_t, kMaxStates + 8> row_;
};

// What a decoder does in each state: the parts lie apart, so that one index finds them all.
struct DecodeTable {
  explicit DecodeTable(const TokenTable& table) {
    const TokenRow row(table);
    std::array<uint32_t, kTokens> next;
    for (size_t token = table.first; token <= table.last; ++token) {
      next[token] = table.counts[token];
    }
    const uint32_t size = uint32_t{1} << table.bits;
    const uint32_t inverse = Inverse(Step(size), size);
    uint32_t at = 0;
    for (uint32_t state = 0; state < size; ++state) {
      const uint8_t token = row[at];
      at = (at + inverse) & (size - 1);
      const uint32_t x = next[token]++;
      const uint32_t count = table.bits - Log2(x);
      tokens[state] = token;
      bits[state] = static_cast<uint8_t>(count);
      bases[state] = static_cast<uint16_t>((x << count) - size);
    }
  }

  std::array<uint8_t, kMaxStates> tokens;
  std::array<uint8_t, kMaxStates> bits;
  std::array<uint16_t, kMaxStates> bases;
};

// Where the encoder goes from a state: see EncodeToken().
struct EncodeTable {
  explicit EncodeTable(const TokenTable& table) {
    const TokenRow row(table);
    const auto size = uint32_t{1} << table.bits;
    TokenCounts next;
    uint32_t before = 0;
    for (size_t token = table.first; token <= table.last; ++token) {
      const uint32_t count = table.counts[token];
      if (count == 0) continue;
      const unsigned bits = table.bits - (count > 1 ? Log2(count - 1) : 0);
      // (state + size + round_up) >> 16 is `bits`, or one less for the smaller states.
      round_up[token] = (count > 1 ? bits << 16 : (table.bits << 16) + size) - (count << bits);
      first[token] = before - count;
      next[token] = before;
      before += count;
    }
    const uint32_t inverse = Inverse(Step(size), size);
    uint32_t at = 0;
    for (uint32_t state = 0; state < size; ++state) {
      states[next[row[at]]++] = static_cast<uint16_t>(size + state);
      at = (at + inverse) & (size - 1);
    }
  }

  std::array<uint16_t, kMaxStates> states;
  std::array<uint32_t, kTokens> round_up;
  std::array<uint32_t, kTokens> first;  // Modulo 2^32.
};

}  // namespace

TokenTable TokenTable::Of(const Occurrences& occurrences) {
  const auto occurs = std::span(occurrences.counts).first(occurrences.end);
  TokenTable table;
  const uint64_t total = occurrences.total;
  uint64_t used = 0;
  for (const uint32_t n : occurs) used += n > 0 ? 1 : 0;
  const auto enough = static_cast<unsigned>(std::bit_width(used));
  const auto fine = static_cast<unsigned>(std::bit_width(total - 1));
  table.bits = std::clamp(std::max(enough, fine > 2 ? fine - 3 : 0), kMinTableBits, kMaxTableBits);
  while (occurs[table.first] == 0) ++table.first;
  table.last = occurs.size() - 1;
  while (occurs[table.last] == 0) --table.last;
  const uint32_t size = uint32_t{1} << table.bits;
  const double scale = static_cast<double>(size) / static_cast<double>(total);
  int64_t left = size;
  for (size_t token = table.first; token <= table.last; ++token) {
    // Cut off, this is the nearest number: a call of lround() costs more, and none is negative.
    const double half_more = static_cast<double>(occurs[token]) * scale + 0.5;
    const auto rounded = static_cast<uint32_t>(half_more);
    // At least one of a token that occurs.
    const uint32_t count = std::max(rounded, std::min(occurs[token], uint32_t{1}));
    table.counts[token] = count;
    left -= count;
  }
  // What rounding gave or took, the most frequent tokens bear.
  const auto counts = std::span(table.counts).subspan(table.first, table.last - table.first + 1);
  while (left != 0) {
    const auto largest = std::max_element(counts.begin(), counts.end());
    const int64_t change =
        left > 0 ? left : std::max(left, -static_cast<int64_t>(*largest / 4 + 1));
    *largest = static_cast<uint32_t>(static_cast<int64_t>(*largest) + change);
    left -= change;
  }
  return table;
}

// Neighbours occur about equally often, so of each count the number of bits is written as its
// difference from that of the one before.
void TokenTable::Write(BitWriter* out) const {
  out->Write(bits, 4);
  out->Write(first, 7);
  out->Write(last, 7);
  unsigned previous = 0;
  for (size_t token = first; token <= last; ++token) {
    const auto width = static_cast<unsigned>(std::bit_width(counts[token]));
    const auto change =
        static_cast<unsigned>(ZigZag(static_cast<int64_t>(width) - static_cast<int64_t>(previous)));
    out->Write(LowBits(change), change + 1);
    if (width > 1) out->Write(counts[token] & LowBits(width - 1), width - 1);
    previous = width;
  }
}

namespace {

// False if the counts are none, or not ok.
TACHO_ALWAYS_INLINE bool ReadCounts(TokenTable* table, BitReader* from) {
  BitReader in = *from;
  uint32_t total = 0;
  uint64_t width = 0;
  for (size_t token = table->first; token <= table->last;) {
    // Takes as many counts as surely are in the bits that were peeked: each is a number of one
    // bits, then a number, and takes at most kMaxCountBits.
    constexpr uint64_t kMaxCountBits = 2 * (kMaxTableBits + 1) + 1 + kMaxTableBits;
    uint64_t waiting = in.Peek();
    uint64_t taken = 0;
    for (; token <= table->last && taken <= kMaxBitsAtOnce - kMaxCountBits; ++token) {
      const auto change = static_cast<uint64_t>(std::countr_zero(~waiting | uint64_t{1} << 32));
      width += static_cast<uint64_t>(UnZigZag(change));
      if (width > kMaxTableBits + 1) return false;
      // A width of 0 is a count of 0, without asking for it.
      const uint64_t below = width - (width > 0 ? 1 : 0);
      waiting >>= change + 1;
      const uint64_t count = (uint64_t{1} << width >> 1) | (waiting & FewBits(below));
      waiting >>= below;
      taken += change + 1 + below;
      table->counts[token] = static_cast<uint32_t>(count);
      total += table->counts[token];
    }
    in.Skip(taken);
    if (!in.ok()) return false;
  }
  *from = in;
  // At most 128 counts of 11 bits: no sum wraps around.
  return total == uint32_t{1} << table->bits;
}

TACHO_TARGET_BMI2 bool ReadCountsBmi2(TokenTable* table, BitReader* from) {
  return ReadCounts(table, from);
}

}  // namespace

bool TokenTable::Read(BitReader* in) {
  bits = static_cast<unsigned>(in->Read(4));
  first = in->Read(7);
  last = in->Read(7);
  if (!in->ok() || bits < kMinTableBits || bits > kMaxTableBits) return false;
  return HasBmi2() ? ReadCountsBmi2(this, in) : ReadCounts(this, in);
}

namespace {

// Bits of one or more steps of the encoder, in the order that the decoder takes them: the bits, and
// above them, from bit 56 on, how many.
static_assert(4 * kMaxTableBits < 56);

TACHO_ALWAYS_INLINE void WriteTokensInto(std::span<const uint8_t> tokens, unsigned table_bits,
                                         const EncodeTable& encode, uint64_t* steps,
                                         BitWriter* out) {
  const auto size = uint64_t{1} << table_bits;
  // Leaves state *x backwards: its lower bits come before those of the steps after it.
  const auto step = [&](size_t i, uint64_t* x, uint64_t* taken,
                        uint64_t* count) TACHO_ALWAYS_INLINE_LAMBDA {
    const uint8_t token = tokens[i];
    const uint64_t bits = (*x + encode.round_up[token]) >> 16;
    *taken = *taken << bits | (*x & FewBits(bits));
    *count += bits;
    *x = encode.states[static_cast<uint32_t>((*x >> bits) + encode.first[token])];
  };
  uint64_t a = size;
  uint64_t b = size;
  uint64_t c = size;
  uint64_t d = size;
  const bool many = tokens.size() >= kManyTokens;
  size_t groups = 0;
  size_t i = tokens.size();
  const auto one = [&](uint64_t* x) {
    uint64_t taken = 0;
    uint64_t count = 0;
    step(--i, x, &taken, &count);
    steps[groups++] = taken | count << 56;
  };
  if (many) {
    if (i % 4 == 3) one(&c);
    if (i % 4 == 2) one(&b);
    if (i % 4 == 1) one(&a);
  }
  for (; i >= 4; i -= 4) {
    uint64_t taken = 0;
    uint64_t count = 0;
    if (many) {
      step(i - 1, &d, &taken, &count);
      step(i - 2, &c, &taken, &count);
      step(i - 3, &b, &taken, &count);
    } else {
      step(i - 1, &a, &taken, &count);
      step(i - 2, &a, &taken, &count);
      step(i - 3, &a, &taken, &count);
    }
    step(i - 4, &a, &taken, &count);
    steps[groups++] = taken | count << 56;
  }
  while (i > 0) one(&a);
  BitWriter writer = *out;
  writer.Write(a - size, table_bits);
  if (many) {
    writer.Write(b - size, table_bits);
    writer.Write(c - size, table_bits);
    writer.Write(d - size, table_bits);
  }
  while (groups-- > 0) {
    writer.Write(steps[groups] & LowBits(56), static_cast<unsigned>(steps[groups] >> 56));
  }
  *out = writer;
}

TACHO_TARGET_BMI2 void WriteTokensBmi2(std::span<const uint8_t> tokens, unsigned table_bits,
                                       const EncodeTable& encode, uint64_t* steps, BitWriter* out) {
  WriteTokensInto(tokens, table_bits, encode, steps, out);
}

}  // namespace

void WriteTokens(std::span<const uint8_t> tokens, const TokenTable& table, BitWriter* out) {
  const EncodeTable encode(table);
  // Four tokens each, but for up to three at either end.
  Scratch<uint64_t, 264> steps(tokens.size() / 4 + 6);
  if (HasBmi2()) {
    WriteTokensBmi2(tokens, table.bits, encode, steps.data(), out);
  } else {
    WriteTokensInto(tokens, table.bits, encode, steps.data(), out);
  }
}

namespace {

// Leaves state *x, taking bits off *waiting; returns how many.
TACHO_ALWAYS_INLINE uint64_t ReadToken(const DecodeTable& decode, uint64_t* x, uint64_t* waiting,
                                       uint8_t* token) {
  const uint64_t bits = decode.bits[*x];
  *token = decode.tokens[*x];
  *x = decode.bases[*x] + (*waiting & FewBits(bits));
  *waiting >>= bits;
  return bits;
}

// Reads in turn from four machines, which are all one or all different (`many`), as long as four
// tokens are left.
TACHO_ALWAYS_INLINE bool ReadTurns(const DecodeTable& decode, unsigned table_bits,
                                   std::array<uint64_t, 4>* machines, bool many, BitReader* from,
                                   std::span<uint8_t> tokens) {
  // Copies, which the compiler knows that no write to a token changes.
  BitReader in = *from;
  uint64_t a = (*machines)[0];
  uint64_t b = (*machines)[1];
  uint64_t c = (*machines)[2];
  uint64_t d = (*machines)[3];
  uint8_t* to = tokens.data();
  uint8_t* const end = to + tokens.size() / 4 * 4;
  const auto turn = [&](uint64_t waiting) TACHO_ALWAYS_INLINE_LAMBDA {
    uint64_t taken = ReadToken(decode, &a, &waiting, to);
    taken += ReadToken(decode, many ? &b : &a, &waiting, to + 1);
    taken += ReadToken(decode, many ? &c : &a, &waiting, to + 2);
    taken += ReadToken(decode, many ? &d : &a, &waiting, to + 3);
    to += 4;
    return taken;
  };
  if (8 * table_bits <= kMaxBitsAtOnce) {
    // The bits of a turn are loaded at the beginning of the one before, for which they do as well:
    // so no turn waits for its bits.
    uint64_t word = in.Peek();
    uint64_t used = 0;
    while (to != end) {
      const uint64_t next_word = in.Word();
      const uint64_t next_used = in.BitOfWord();
      const uint64_t taken = turn(word >> used);
      in.Skip(taken);
      if (!in.ok()) return false;
      word = next_word;
      used = next_used + taken;
    }
  } else {
    while (to != end) {
      in.Skip(turn(in.Peek()));
      if (!in.ok()) return false;
    }
  }
  *from = in;
  *machines = {a, b, c, d};
  return true;
}

// The table is given, not made here: as far as the compiler knows, writing tokens may change it, so
// each is written at once. It would put eight together, in twice the time.
TACHO_ALWAYS_INLINE bool ReadTokensInto(const DecodeTable& decode, unsigned table_bits,
                                        BitReader* in, std::span<uint8_t> tokens) {
  const bool many = tokens.size() >= kManyTokens;
  std::array<uint64_t, 4> machines = {};
  for (size_t i = 0; i < (many ? machines.size() : 1); ++i) machines[i] = in->Read(table_bits);
  if (!(many ? ReadTurns(decode, table_bits, &machines, true, in, tokens)
             : ReadTurns(decode, table_bits, &machines, false, in, tokens))) {
    return false;
  }
  // At most three tokens are left over.
  const size_t left = tokens.size() % 4;
  for (size_t i = 0; i < left; ++i) {
    uint64_t waiting = in->Peek();
    in->Skip(
        ReadToken(decode, &machines[many ? i : 0], &waiting, &tokens[tokens.size() - left + i]));
  }
  return in->ok() && (machines[0] | machines[1] | machines[2] | machines[3]) == 0;
}

TACHO_TARGET_BMI2 bool ReadTokensBmi2(const DecodeTable& decode, unsigned table_bits, BitReader* in,
                                      std::span<uint8_t> tokens) {
  return ReadTokensInto(decode, table_bits, in, tokens);
}

}  // namespace

bool ReadTokens(const TokenTable& table, BitReader* from, std::span<uint8_t> tokens) {
  const DecodeTable decode(table);
  return HasBmi2() ? ReadTokensBmi2(decode, table.bits, from, tokens)
                   : ReadTokensInto(decode, table.bits, from, tokens);
}

}  // namespace tacho::storage
