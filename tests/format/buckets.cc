// The form "buckets" of integer columns: state machines give tokens, then come their offsets.
#include <array>
#include <bit>

#include "tests/format/integer_column.h"

namespace format_page {
namespace {

constexpr size_t kTokens = 128;
using Counts = std::array<uint64_t, kTokens>;

struct State {
  unsigned token = 0;
  unsigned bits = 0;
  uint64_t base = 0;
};

// Reads the table of counts; the caller has read the logarithm of their sum.
Counts ReadCounts(Bytes* bytes, Bits* bits, unsigned log) {
  Counts counts{};
  const uint64_t first = bits->Take(7);
  const uint64_t last = bits->Take(7);
  uint64_t sum = 0;
  int64_t width = 0;
  for (uint64_t token = first; token <= last && bytes->ok(); ++token) {
    uint64_t ones = 0;
    while (bits->Take(1) == 1) ++ones;
    width += Unzigzag(ones);
    if (width < 0 || width > static_cast<int64_t>(log) + 1) {
      bytes->Fail("a count that is no part of the sum");
      return counts;
    }
    if (width > 0) {
      const unsigned lower = static_cast<unsigned>(width) - 1;
      counts[token] = uint64_t{1} << lower | bits->Take(lower);
    }
    sum += counts[token];
  }
  if (first > last || sum != uint64_t{1} << log) bytes->Fail("counts of the wrong sum");
  return counts;
}

std::vector<State> MakeStates(const Counts& counts, unsigned log) {
  const uint64_t size = uint64_t{1} << log;
  std::vector<State> states(size);
  uint64_t at = 0;
  for (unsigned token = 0; token < kTokens; ++token) {
    for (uint64_t i = 0; i < counts[token]; ++i) {
      states[at].token = token;
      at = (at + size / 2 + size / 8 + 3) % size;
    }
  }
  Counts before{};
  for (State& state : states) {
    const uint64_t x = counts[state.token] + before[state.token]++;
    state.bits = log - (static_cast<unsigned>(std::bit_width(x)) - 1);
    state.base = (x << state.bits) - size;
  }
  return states;
}

std::vector<unsigned> ReadTokens(Bytes* bytes, Bits* bits, size_t count) {
  const unsigned log = static_cast<unsigned>(bits->Take(4));
  if (log < 5 || log > 10) {
    bytes->Fail("a table of a size that there is not");
    return {};
  }
  const Counts counts = ReadCounts(bytes, bits, log);
  if (!bytes->ok()) return {};
  const std::vector<State> states = MakeStates(counts, log);
  std::vector<uint64_t> machines(count >= 256 ? 4 : 1);
  bytes->Met("buckets: machines " + std::to_string(machines.size()));
  for (uint64_t& machine : machines) machine = bits->Take(log);
  std::vector<unsigned> tokens;
  for (size_t i = 0; i < count; ++i) {
    uint64_t& machine = machines[i % machines.size()];
    const State& state = states[machine];
    tokens.push_back(state.token);
    machine = state.base + bits->Take(state.bits);
  }
  for (const uint64_t machine : machines) {
    if (machine != 0) bytes->Fail("a machine that does not end in state 0");
  }
  return tokens;
}

}  // namespace

std::vector<uint64_t> ReadBuckets(Bytes* bytes, size_t count) {
  Bits bits(bytes);
  const unsigned shift = static_cast<unsigned>(bits.Take(6));
  if (shift > 0) bytes->Met("buckets: shift");
  std::vector<uint64_t> numbers;
  for (const unsigned token : ReadTokens(bytes, &bits, count)) {
    const unsigned width = token < 2 ? shift : token / 2 - 1 + shift;
    if (width > 63 || (token >= 2 && width > 62)) {
      bytes->Fail("a token of a number beyond 64 bits");
      return {};
    }
    const uint64_t begin = (token < 2 ? uint64_t{token} : uint64_t{2} + token % 2) << width;
    numbers.push_back(begin + bits.Take(width));
  }
  return numbers;
}

}  // namespace format_page
