#include "storage/ans.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "storage/scratch.h"

namespace tacho::storage {
namespace {

constexpr unsigned kMinTableBits = 5;
constexpr size_t kMaxStates = size_t{1} << kMaxTableBits;
// Columns shorter than this have a single state: each costs a table's bits.
constexpr size_t kManyTokens = 256;

unsigned Log2(uint64_t value) { return static_cast<unsigned>(std::bit_width(value)) - 1; }

// The token of every state. A step that is odd, and so prime to the size, spreads each token's
// states over the table.
void SpreadTokens(const TokenTable& table, std::span<uint8_t> token_of) {
  const size_t size = size_t{1} << table.bits;
  const size_t step = size / 2 + size / 8 + 3;
  // First in a row, eight at once: most tokens have no more, so that no branch is to be guessed.
  std::array<uint8_t, kMaxStates + 8> row;
  size_t end = 0;
  for (size_t token = table.first; token <= table.last; ++token) {
    const uint64_t eight = token * 0x0101010101010101;
    for (size_t i = 0; i < table.counts[token]; i += 8) {
      std::memcpy(row.data() + end + i, &eight, sizeof(eight));
    }
    end += table.counts[token];
  }
  size_t at = 0;
  for (size_t i = 0; i < size; ++i) {
    token_of[at] = row[i];
    at = (at + step) & (size - 1);
  }
}

// What a decoder does in each state.
class DecodeTable {
 public:
  explicit DecodeTable(const TokenTable& table) {
    std::array<uint8_t, kMaxStates> token_of;
    SpreadTokens(table, token_of);
    std::array<uint16_t, kTokens> next;
    for (size_t token = table.first; token <= table.last; ++token) {
      next[token] = static_cast<uint16_t>(table.counts[token]);
    }
    const uint32_t size = uint32_t{1} << table.bits;
    for (size_t state = 0; state < size; ++state) {
      const uint8_t token = token_of[state];
      const uint32_t x = next[token]++;
      const uint32_t bits = table.bits - Log2(x);
      entries_[state] = {static_cast<uint16_t>((x << bits) - size), token,
                         static_cast<uint8_t>(bits)};
    }
  }

  // Leaves state *x, taking bits off *waiting and adding their number to *taken.
  uint8_t Step(uint64_t* x, uint64_t* waiting, uint64_t* taken) const {
    const Entry& entry = entries_[*x];
    const uint64_t bits = entry.bits;
    *x = entry.base + (*waiting & FewBits(bits));
    *waiting >>= bits;
    *taken += bits;
    return entry.token;
  }

 private:
  struct Entry {
    uint16_t base;
    uint8_t token;
    uint8_t bits;
  };
  std::array<Entry, kMaxStates> entries_;
};

// Where the encoder goes from a state: see EncodeToken().
struct EncodeTable {
  explicit EncodeTable(const TokenTable& table) {
    std::array<uint8_t, kMaxStates> token_of;
    SpreadTokens(table, token_of);
    const auto size = uint32_t{1} << table.bits;
    TokenCounts next = {};
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
    for (uint32_t state = 0; state < size; ++state) {
      states[next[token_of[state]]++] = static_cast<uint16_t>(size + state);
    }
  }

  std::array<uint16_t, kMaxStates> states;
  std::array<uint32_t, kTokens> round_up;
  std::array<uint32_t, kTokens> first;  // Modulo 2^32.
};

}  // namespace

TokenTable TokenTable::Of(const TokenCounts& occurrences) {
  const uint64_t total = std::accumulate(occurrences.begin(), occurrences.end(), uint64_t{0});
  const auto used = static_cast<uint64_t>(
      std::count_if(occurrences.begin(), occurrences.end(), [](uint32_t n) { return n > 0; }));
  TokenTable table;
  const auto enough = static_cast<unsigned>(std::bit_width(used));
  const auto fine = static_cast<unsigned>(std::bit_width(total - 1));
  table.bits = std::clamp(std::max(enough, fine > 2 ? fine - 3 : 0), kMinTableBits, kMaxTableBits);
  while (occurrences[table.first] == 0) ++table.first;
  table.last = kTokens - 1;
  while (occurrences[table.last] == 0) --table.last;
  const uint64_t size = uint64_t{1} << table.bits;
  int64_t left = static_cast<int64_t>(size);
  for (size_t token = 0; token < kTokens; ++token) {
    if (occurrences[token] == 0) continue;
    const uint64_t count = std::max<uint64_t>(1, (occurrences[token] * size + total / 2) / total);
    table.counts[token] = static_cast<uint32_t>(count);
    left -= static_cast<int64_t>(count);
  }
  // What rounding gave or took, the most frequent tokens bear.
  while (left != 0) {
    const auto largest = std::max_element(table.counts.begin(), table.counts.end());
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

bool TokenTable::Read(BitReader* in) {
  counts = {};
  bits = static_cast<unsigned>(in->Read(4));
  first = in->Read(7);
  last = in->Read(7);
  if (!in->ok() || bits < kMinTableBits || bits > kMaxTableBits) return false;
  uint32_t left = uint32_t{1} << bits;
  int64_t width = 0;
  for (size_t token = first; token <= last; ++token) {
    // The lengths of both numbers come to 34 bits at most if the width is right.
    uint64_t waiting = in->Peek();
    const auto change = static_cast<unsigned>(std::countr_one(waiting & LowBits(32)));
    waiting >>= change + 1;
    in->Skip(change + 1);
    width += UnZigZag(change);
    if (!in->ok() || width < 0 || width > kMaxTableBits + 1) return false;
    if (width == 0) continue;
    const auto below = static_cast<unsigned>(width - 1);
    counts[token] = static_cast<uint32_t>(waiting & FewBits(below)) | uint32_t{1} << below;
    in->Skip(below);
    if (!in->ok() || counts[token] > left) return false;
    left -= counts[token];
  }
  return left == 0;
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

TACHO_ALWAYS_INLINE bool ReadTokensInto(unsigned table_bits, const DecodeTable& decode,
                                        BitReader* from, std::span<uint8_t> tokens) {
  // A copy, which the compiler knows that no write to a token changes.
  BitReader in = *from;
  const size_t states = tokens.size() < kManyTokens ? 1 : 4;
  uint64_t a = in.Read(table_bits);
  uint64_t b = states == 4 ? in.Read(table_bits) : 0;
  uint64_t c = states == 4 ? in.Read(table_bits) : 0;
  uint64_t d = states == 4 ? in.Read(table_bits) : 0;
  size_t i = 0;
  // Each machine in turn, `rounds` times, by bits that are looked at once.
  const auto turns = [&](size_t rounds) TACHO_ALWAYS_INLINE_LAMBDA {
    uint64_t waiting = in.Peek();
    uint64_t taken = 0;
    for (const size_t end = i + 4 * rounds; i < end; i += 4) {
      tokens[i] = decode.Step(&a, &waiting, &taken);
      tokens[i + 1] = decode.Step(&b, &waiting, &taken);
      tokens[i + 2] = decode.Step(&c, &waiting, &taken);
      tokens[i + 3] = decode.Step(&d, &waiting, &taken);
    }
    in.Skip(taken);
    return in.ok();
  };
  if (states == 4) {
    if (8 * table_bits <= kMaxBitsAtOnce) {
      while (i + 8 <= tokens.size()) {
        if (!turns(2)) return false;
      }
    }
    while (i + 4 <= tokens.size()) {
      if (!turns(1)) return false;
    }
  }
  if (states == 1) {
    constexpr size_t kAtOnce = kMaxBitsAtOnce / kMaxTableBits;
    for (; i + kAtOnce <= tokens.size(); i += kAtOnce) {
      uint64_t waiting = in.Peek();
      uint64_t taken = 0;
      for (size_t k = i; k < i + kAtOnce; ++k) {
        tokens[k] = decode.Step(&a, &waiting, &taken);
      }
      in.Skip(taken);
      if (!in.ok()) return false;
    }
  }
  // What is left over: at most three tokens of four machines, a few of one.
  for (; i < tokens.size(); ++i) {
    uint64_t waiting = in.Peek();
    uint64_t taken = 0;
    tokens[i] = decode.Step(&a, &waiting, &taken);
    in.Skip(taken);
    if (!in.ok()) return false;
    if (states == 4) {
      std::swap(a, b);
      std::swap(b, c);
    }
  }
  *from = in;
  return (a | b | c | d) == 0;
}

// The table is given, not made here: as far as the compiler knows, writing tokens may change it, so
// each is written at once. It would put eight together, in twice the time.
TACHO_TARGET_BMI2 bool ReadTokensBmi2(unsigned table_bits, const DecodeTable& decode,
                                      BitReader* from, std::span<uint8_t> tokens) {
  return ReadTokensInto(table_bits, decode, from, tokens);
}

}  // namespace

bool ReadTokens(const TokenTable& table, BitReader* from, std::span<uint8_t> tokens) {
  const DecodeTable decode(table);
  return HasBmi2() ? ReadTokensBmi2(table.bits, decode, from, tokens)
                   : ReadTokensInto(table.bits, decode, from, tokens);
}

}  // namespace tacho::storage
