// Chooses how a column of integers is written, then writes or reads it. A sample decides for a long
// column: finding the best form of all integers would take longer than writing them.
#include "storage/codec/integer_codec.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "storage/codec/bit_stream.h"
#include "storage/codec/buckets.h"
#include "storage/codec/column_codec.h"

namespace tacho::storage {
namespace {

constexpr unsigned kMaxOrder = 2;
constexpr size_t kFewIntegers = 96;
// For longer columns a sample decides.
constexpr size_t kSampleRun = 48;
constexpr size_t kSampleRuns = 4;

constexpr uint8_t kFolded = 1 << 2;
constexpr uint8_t kHasDivisor = 1 << 3;
enum Form : uint8_t { kEqual = 0, kPacked = 1, kBuckets = 2 };

// Differences modulo 2^64, in place: integers[i] becomes that to integers[i + 1].
void Difference(std::span<uint64_t>* integers) {
  for (size_t i = 0; i + 1 < integers->size(); ++i) {
    (*integers)[i] = (*integers)[i + 1] - (*integers)[i];
  }
  *integers = integers->first(integers->size() - 1);
}

// The same in each of the runs that the integers are made of.
void TakeDifferences(size_t run, std::span<uint64_t>* integers) {
  size_t to = 0;
  for (size_t begin = 0; begin < integers->size(); begin += run) {
    const size_t end = std::min(begin + run, integers->size());
    for (size_t i = begin; i + 1 < end; ++i) {
      (*integers)[to++] = (*integers)[i + 1] - (*integers)[i];
    }
  }
  *integers = integers->first(to);
}

int64_t Median(int64_t a, int64_t b, int64_t c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

// About in the middle of the integers, by order of int64: the median of medians of medians.. of
// some of them, in which no branch is to be guessed.
uint64_t Middle(std::span<const uint64_t> integers) {
  std::array<int64_t, 81> some;
  const size_t looked = integers.size() < kFewIntegers ? some.size() / 3 : some.size();
  const size_t stride = integers.size() * 65536 / looked;
  size_t at = stride / 2;
  for (size_t i = 0; i < looked; ++i) {
    some[i] = static_cast<int64_t>(integers[at >> 16]);
    at += stride;
  }
  for (size_t count = looked / 3; count > 0; count /= 3) {
    for (size_t i = 0; i < count; ++i) {
      some[i] = Median(some[i], some[i + count], some[i + 2 * count]);
    }
  }
  return static_cast<uint64_t>(some[0]);
}

uint64_t Smallest(std::span<const uint64_t> integers) {
  int64_t smallest = INT64_MAX;
  for (const uint64_t i : integers) smallest = std::min(smallest, static_cast<int64_t>(i));
  return static_cast<uint64_t>(smallest);
}

uint64_t Range(std::span<const uint64_t> integers) {
  int64_t largest = INT64_MIN;
  for (const uint64_t i : integers) largest = std::max(largest, static_cast<int64_t>(i));
  return static_cast<uint64_t>(largest) - Smallest(integers);
}

// Bits of an integer as zig-zag varint.
int VarintBits(uint64_t integer) {
  const auto bits = static_cast<int>(std::bit_width(ZigZag(static_cast<int64_t>(integer)) | 1));
  return (bits + 6) / 7 * 8;
}

uint64_t Magnitude(uint64_t difference) {
  return static_cast<int64_t>(difference) < 0 ? 0 - difference : difference;
}

// Divides numbers by a divisor of theirs without dividing: an odd number has an inverse modulo
// 2^64, and a product with it is small just if the number was a multiple.
class ExactDivision {
 public:
  explicit ExactDivision(uint64_t divisor)
      : shift_(static_cast<unsigned>(std::countr_zero(divisor))),
        inverse_(divisor >> shift_),
        largest_(~uint64_t{0} / divisor) {
    const uint64_t odd = divisor >> shift_;
    for (int bits = 3; bits < 64; bits *= 2) inverse_ *= 2 - odd * inverse_;
  }
  bool Divides(uint64_t number) const {
    return (number & LowBits(shift_)) == 0 && Quotient(number) <= largest_;
  }
  uint64_t Quotient(uint64_t number) const { return (number >> shift_) * inverse_; }

 private:
  unsigned shift_;
  uint64_t inverse_;
  uint64_t largest_;
};

// The greatest common divisor of what the integers differ by; 0 if nothing.
uint64_t CommonDivisor(std::span<const uint64_t> integers) {
  uint64_t divisor = 0;
  size_t i = 1;
  for (; i < integers.size() && divisor == 0; ++i) divisor = Magnitude(integers[i] - integers[0]);
  while (i < integers.size() && divisor > 1) {
    const ExactDivision division(divisor);
    while (i < integers.size() && division.Divides(Magnitude(integers[i] - integers[0]))) ++i;
    if (i < integers.size()) divisor = std::gcd(divisor, Magnitude(integers[i] - integers[0]));
  }
  // Differences that wrap around are no multiples.
  if (divisor > 1 && Range(integers) >> 62 != 0) return 1;
  return divisor;
}

}  // namespace

IntegerPlan IntegerPlan::Of(std::span<const int64_t> sample, size_t run, size_t count) {
  IntegerPlan best;
  constexpr size_t kFew = kSampleRun * kSampleRuns;
  Scratch<uint64_t, kFew> copy(sample.size());
  Scratch<uint64_t, kFew> scratch(sample.size());
  Scratch<uint8_t, kFew> tokens(sample.size());
  uint64_t* const numbers = scratch.data();
  std::copy(sample.begin(), sample.end(), copy.data());
  std::span<uint64_t> integers = copy.span();
  double first_bits = 0;  // Bits of the integers that differences begin with.
  for (unsigned order = 0; order <= kMaxOrder; ++order) {
    if (order > 0) {
      if (run < 2) break;
      first_bits += VarintBits(integers[0]);
      TakeDifferences(run--, &integers);
    }
    if (integers.empty()) break;
    const double scale = static_cast<double>(count) / static_cast<double>(integers.size());
    const auto bits = [&](bool fold, uint64_t base) {
      if (fold) {
        for (size_t i = 0; i < integers.size(); ++i) {
          numbers[i] = ZigZag(static_cast<int64_t>(integers[i] - base));
        }
      } else {
        for (size_t i = 0; i < integers.size(); ++i) numbers[i] = integers[i] - base;
      }
      const auto plan = BucketPlan::Of(MakeTokens({numbers, integers.size()}, tokens.data()));
      return plan.number_bits * scale + plan.table_bits + first_bits + VarintBits(base);
    };
    const double folded_bits = bits(true, Middle(integers));
    // Where first differences do not help, second ones do not either.
    if (order > 0 && folded_bits > best.bits) break;
    best = {order, true, folded_bits};
    const double plain_bits = bits(false, Smallest(integers));
    if (plain_bits < best.bits) best = {order, false, plain_bits};
  }
  return best;
}

void AppendIntegers(std::span<const int64_t> integers, std::string* out) {
  if (integers.empty()) return;
  if (integers.size() <= kSampleRun * kSampleRuns) {
    return AppendIntegers(integers, IntegerPlan::Of(integers, integers.size(), integers.size()),
                          out);
  }
  std::array<int64_t, kSampleRun * kSampleRuns> sample;
  for (size_t i = 0; i < kSampleRuns; ++i) {
    const size_t begin = (integers.size() - kSampleRun) * i / (kSampleRuns - 1);
    std::copy_n(integers.begin() + static_cast<ptrdiff_t>(begin), kSampleRun,
                sample.begin() + static_cast<ptrdiff_t>(i * kSampleRun));
  }
  AppendIntegers(integers, IntegerPlan::Of(sample, kSampleRun, integers.size()), out);
}

void AppendIntegers(std::span<const int64_t> integers, const IntegerPlan& plan, std::string* out) {
  if (integers.empty()) return;
  const auto order = static_cast<unsigned>(std::min<size_t>(plan.order, integers.size()));
  Scratch<uint64_t> numbers(integers.size());
  std::copy(integers.begin(), integers.end(), numbers.data());
  std::span<uint64_t> residuals = numbers.span();
  const size_t head = out->size();
  out->push_back(static_cast<char>(order));
  for (unsigned k = 0; k < order; ++k) {
    PutVarint(ZigZag(static_cast<int64_t>(residuals[0])), out);
    Difference(&residuals);
  }
  if (residuals.empty()) return;
  const uint64_t divisor = CommonDivisor(residuals);
  if (divisor == 0) {
    PutVarint(ZigZag(static_cast<int64_t>(residuals[0])), out);
    return;
  }
  uint64_t base = plan.folded ? Middle(residuals) : Smallest(residuals);
  PutVarint(ZigZag(static_cast<int64_t>(base)), out);
  if (divisor > 1) {
    PutVarint(divisor, out);
    const ExactDivision division(divisor);
    if (plan.folded) {
      for (uint64_t& r : residuals) {
        const uint64_t quotient = division.Quotient(Magnitude(r - base));
        r = static_cast<int64_t>(r - base) < 0 ? 2 * quotient - 1 : 2 * quotient;
      }
    } else {
      for (uint64_t& r : residuals) r = division.Quotient(r - base);
    }
  } else if (plan.folded) {
    for (uint64_t& r : residuals) r = ZigZag(static_cast<int64_t>(r - base));
  } else {
    for (uint64_t& r : residuals) r -= base;
  }
  Scratch<uint8_t> tokens(residuals.size());
  const Occurrences occurrences = MakeTokens(residuals, tokens.data());
  const BucketPlan buckets = BucketPlan::Of(occurrences);
  const unsigned form = buckets.packed ? kPacked : kBuckets;
  (*out)[head] = static_cast<char>(order | (plan.folded ? kFolded : 0U) |
                                   (divisor > 1 ? kHasDivisor : 0U) | form << 4);
  WriteBuckets(residuals, occurrences, buckets, tokens.span(), out);
}

namespace {

// What the numbers of a column become.
struct Residuals {
  uint64_t base = 0;
  uint64_t divisor = 1;
  bool folded = false;
  std::array<uint64_t, kMaxOrder> first = {};
};

// Makes residuals of numbers, in place.
template <bool kFolded>
TACHO_ALWAYS_INLINE void MakeResiduals(uint64_t base, uint64_t divisor,
                                       std::span<int64_t> numbers) {
  for (int64_t& number : numbers) {
    const auto n = static_cast<uint64_t>(number);
    number =
        static_cast<int64_t>(base + divisor * (kFolded ? static_cast<uint64_t>(UnZigZag(n)) : n));
  }
}

// Makes integers of numbers, in place; the first kOrder of them are not read.
template <unsigned kOrder>
void MakeIntegers(const Residuals& residuals, std::span<int64_t> integers) {
  const auto rest = integers.subspan(kOrder);
  // Several at once, unless there is a product.
  if (residuals.divisor == 1) {
    residuals.folded ? MakeResiduals<true>(residuals.base, 1, rest)
                     : MakeResiduals<false>(residuals.base, 1, rest);
  } else {
    residuals.folded ? MakeResiduals<true>(residuals.base, residuals.divisor, rest)
                     : MakeResiduals<false>(residuals.base, residuals.divisor, rest);
  }
  if constexpr (kOrder == 0) return;
  uint64_t sum = residuals.first[0];
  integers[0] = static_cast<int64_t>(sum);
  if constexpr (kOrder == 1) {
    // The sum waits for that before it only once for four of them.
    size_t i = 0;
    for (; i + 4 <= rest.size(); i += 4) {
      const auto first = static_cast<uint64_t>(rest[i]);
      const uint64_t second = first + static_cast<uint64_t>(rest[i + 1]);
      const auto next = static_cast<uint64_t>(rest[i + 2]);
      const uint64_t two = next + static_cast<uint64_t>(rest[i + 3]);
      rest[i] = static_cast<int64_t>(sum + first);
      rest[i + 1] = static_cast<int64_t>(sum + second);
      rest[i + 2] = static_cast<int64_t>(sum + (second + next));
      sum += second + two;
      rest[i + 3] = static_cast<int64_t>(sum);
    }
    for (int64_t& integer : rest.subspan(i)) {
      sum += static_cast<uint64_t>(integer);
      integer = static_cast<int64_t>(sum);
    }
  }
  if constexpr (kOrder == 2) {
    uint64_t difference = residuals.first[1];
    sum += difference;
    integers[1] = static_cast<int64_t>(sum);
    for (int64_t& integer : rest) {
      difference += static_cast<uint64_t>(integer);
      sum += difference;
      integer = static_cast<int64_t>(sum);
    }
  }
}

}  // namespace

bool TakeIntegers(ByteReader* in, std::span<int64_t> integers) {
  if (integers.empty()) return in->ok();
  const uint8_t head = in->Byte();
  const unsigned order = head & 3;
  const unsigned form = head >> 4;
  if (!in->ok() || order > kMaxOrder || order > integers.size() || form > kBuckets) return false;
  Residuals residuals;
  for (unsigned k = 0; k < order; ++k) {
    residuals.first[k] = static_cast<uint64_t>(UnZigZag(in->Varint()));
  }
  const auto rest = integers.subspan(order);
  if (!rest.empty()) {
    residuals.base = static_cast<uint64_t>(UnZigZag(in->Varint()));
    residuals.divisor = (head & kHasDivisor) != 0 ? in->Varint() : 1;
    residuals.folded = (head & kFolded) != 0;
    if (!in->ok()) return false;
    if (form == kEqual) {
      std::fill(rest.begin(), rest.end(), 0);
    } else {
      const std::span<uint64_t> numbers(reinterpret_cast<uint64_t*>(rest.data()), rest.size());
      if (!ReadBuckets(form == kPacked, in, numbers)) return false;
    }
  }
  switch (order) {
    case 0:
      MakeIntegers<0>(residuals, integers);
      break;
    case 1:
      MakeIntegers<1>(residuals, integers);
      break;
    default:
      MakeIntegers<2>(residuals, integers);
  }
  return in->ok();
}

void ColumnCodec::EncodeIntegers(std::span<const int64_t> integers, std::string* out) {
  AppendIntegers(integers, out);
}

absl::Status ColumnCodec::DecodeIntegers(absl::string_view bytes, size_t count,
                                         std::vector<int64_t>* out) {
  out->resize(count);
  Padded padded(bytes);
  ByteReader in(padded.bytes());
  if (TakeIntegers(&in, *out) && in.AtEnd()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("a column of ", count, " integers in ", bytes.size(), " bytes is damaged"));
}

}  // namespace tacho::storage
