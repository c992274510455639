// Encodes columns of values. A sample of the column decides how.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "proto/base/stale_marker.h"
#include "storage/codec/bit_stream.h"
#include "storage/codec/column_codec.h"
#include "storage/codec/integer_codec.h"
#include "storage/codec/quotient.h"
#include "storage/codec/value_encoding.h"

namespace tacho::storage {
namespace {

constexpr size_t kSampleRun = 48;
constexpr size_t kSampleRuns = 4;
constexpr size_t kMaxSample = kSampleRun * kSampleRuns;

bool AllEqual(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [&](double value) { return Bits(value) == Bits(values[0]); });
}

// Runs of neighbours from all over the column, or all of it.
class Sample {
 public:
  explicit Sample(std::span<const double> column) : of_(column.size()), values_(column) {
    if (column.size() <= kMaxSample) {
      run_ = column.size();
      return;
    }
    for (size_t i = 0; i < kSampleRuns; ++i) {
      const size_t begin = (column.size() - kSampleRun) * i / (kSampleRuns - 1);
      std::copy_n(column.begin() + static_cast<ptrdiff_t>(begin), kSampleRun,
                  copy_.begin() + static_cast<ptrdiff_t>(i * kSampleRun));
    }
    values_ = copy_;
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  std::span<const double> values() const { return values_; }
  // Plans how to write one integer for each of the values.
  IntegerPlan Plan(std::span<const int64_t> integers) const {
    return IntegerPlan::Of(integers.first(values_.size()), run_, of_);
  }
  // How often it goes into the column.
  double scale() const { return static_cast<double>(of_) / static_cast<double>(values_.size()); }

 private:
  size_t of_;
  size_t run_ = kSampleRun;
  std::array<double, kMaxSample> copy_;
  std::span<const double> values_;
};

void AppendColumn(std::span<const double> values, std::string* out);

void AppendRaw(std::span<const double> values, std::string* out) {
  out->push_back(static_cast<char>(kRaw));
  out->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void AppendConstant(double value, std::string* out) {
  // A short decimal takes less than its bits.
  const std::span<const double> one(&value, 1);
  if (const auto form = FindQuotientForm(one, AllFloats(one))) {
    Quotients quotients(1);
    if (quotients.Assign(one, *form) && quotients.exceptions.empty()) {
      std::string bytes(1, static_cast<char>(kQuotient | (form->floats ? kFloats : 0)));
      PutVarint(form->divisor, &bytes);
      // An integer column of equal integers does not know how many they are.
      AppendIntegers(quotients.integers.span(), {}, &bytes);
      if (bytes.size() <= sizeof(double)) {
        out->append(bytes);
        return;
      }
    }
  }
  out->push_back(static_cast<char>(kConstant));
  PutLe64(Bits(value), out);
}

void MakeOrdered(std::span<const double> values, bool floats, int64_t* integers) {
  if (floats) {
    for (size_t i = 0; i < values.size(); ++i) {
      integers[i] = OrderedFloat(static_cast<float>(values[i]));
    }
  } else {
    for (size_t i = 0; i < values.size(); ++i) integers[i] = Ordered(values[i]);
  }
}

IntegerPlan PlanOrdered(const Sample& sample, bool floats) {
  std::array<int64_t, kMaxSample> integers;
  MakeOrdered(sample.values(), floats, integers.data());
  return sample.Plan(integers);
}

void AppendOrdered(std::span<const double> values, bool floats, const IntegerPlan& plan,
                   std::string* out) {
  out->push_back(static_cast<char>(kOrdered | (floats ? kFloats : 0)));
  Scratch<int64_t> integers(values.size());
  MakeOrdered(values, floats, integers.data());
  AppendIntegers(integers.span(), plan, out);
}

// How a column is written, and what it is thought to take.
struct Choice {
  ValueEncoding encoding = kOrdered;
  double bits = 0;
  IntegerPlan plan;
  QuotientForm form;
};

// Appends nothing and returns false if the sample was not like the column.
bool AppendQuotients(std::span<const double> values, const Choice& choice, std::string* out) {
  const QuotientForm& form = choice.form;
  Quotients quotients(values.size());
  if (!quotients.Assign(values, form)) return false;
  const auto& exceptions = quotients.exceptions;
  out->push_back(static_cast<char>(kQuotient | (form.floats ? kFloats : 0) |
                                   (exceptions.empty() ? 0 : kExceptions) |
                                   (form.near ? kNear : 0)));
  PutVarint(form.divisor, out);
  AppendIntegers(quotients.integers.span(), choice.plan, out);
  if (form.near) AppendIntegers(quotients.steps.span(), {.order = 0, .folded = true}, out);
  if (!exceptions.empty()) {
    PutVarint(exceptions.size(), out);
    AppendIntegers(exceptions, out);
    std::vector<double> kept(exceptions.size());
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = values[static_cast<size_t>(exceptions[i])];
    if (AllEqual(kept)) {
      out->push_back(static_cast<char>(kConstant));
      PutLe64(Bits(kept[0]), out);
    } else {
      AppendRaw(kept, out);
    }
  }
  return true;
}

std::optional<Choice> ChooseQuotients(const Sample& sample, bool floats) {
  auto form = FindQuotientForm(sample.values(), floats);
  if (!form) return std::nullopt;
  form->near = !floats;
  Quotients quotients(sample.values().size());
  if (!quotients.Assign(sample.values(), *form)) return std::nullopt;
  form->near = form->near && quotients.AnySteps();
  Choice choice{kQuotient, 0, sample.Plan(quotients.integers.span()), *form};
  constexpr double kException = 76;
  choice.bits = choice.plan.bits + 16 +
                kException * static_cast<double>(quotients.exceptions.size()) * sample.scale();
  if (form->near) choice.bits += sample.Plan(quotients.steps.span()).bits;
  return choice;
}

// The one of 2^count places where a value is looked for first.
size_t PlaceOf(uint64_t bits, unsigned count) {
  // The highest bits of a product depend on all.
  return static_cast<size_t>((bits ^ bits >> 32) * 0x9e3779b97f4a7c15 >> (64 - count));
}

// The distinct values that columns hold, if they are few.
class DistinctValues {
 public:
  // Holds at most `most` distinct values.
  explicit DistinctValues(size_t most)
      : most_(most),
        place_bits_(static_cast<unsigned>(std::bit_width(2 * most))),
        slots_(size_t{1} << place_bits_),
        values_(most) {
    std::fill_n(slots_.data(), slots_.size(), 0);
  }

  // False if these are too many.
  bool Add(std::span<const double> values) {
    for (const double value : values) {
      uint32_t& slot = Slot(Bits(value));
      if (slot != 0) continue;
      if (size_ == most_) return false;
      values_.data()[size_++] = Bits(value);
      slot = static_cast<uint32_t>(size_);
    }
    return true;
  }

  // Puts them in order, each numbered by its rank.
  void Sort() {
    const auto values = values_.span().first(size_);
    std::sort(values.begin(), values.end(), [](uint64_t a, uint64_t b) {
      return Ordered(std::bit_cast<double>(a)) < Ordered(std::bit_cast<double>(b));
    });
    std::fill_n(slots_.data(), slots_.size(), 0);
    for (size_t i = 0; i < size_; ++i) {
      size_t at = Home(values[i]);
      while (slots_.data()[at] != 0) at = (at + 1) & (slots_.size() - 1);
      slots_.data()[at] = static_cast<uint32_t>(i + 1);
    }
  }
  size_t size() const { return size_; }
  double operator[](size_t i) { return std::bit_cast<double>(values_.data()[i]); }
  // The value must be among them.
  size_t Rank(double value) { return Slot(Bits(value)) - 1; }

 private:
  size_t Home(uint64_t bits) const { return PlaceOf(bits, place_bits_); }
  // The value's slot, or the free one, 0, where it would be.
  uint32_t& Slot(uint64_t bits) {
    size_t at = Home(bits);
    while (slots_.data()[at] != 0 && values_.data()[slots_.data()[at] - 1] != bits) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_.data()[at];
  }

  size_t most_;
  unsigned place_bits_;
  size_t size_ = 0;
  Scratch<uint32_t, 1024> slots_;  // 1 + the number of a value.
  Scratch<uint64_t, 512> values_;
};

// Appends nothing and returns false if another choice is better.
bool AppendDictionary(std::span<const double> values, const Choice& other, std::string* out) {
  DistinctValues distinct(values.size() / 4);
  if (!distinct.Add(values)) return false;
  distinct.Sort();
  Scratch<double, 512> dictionary(distinct.size());
  for (size_t i = 0; i < distinct.size(); ++i) dictionary.data()[i] = distinct[i];
  Scratch<int64_t> indices(values.size());
  int64_t* const index = indices.data();
  for (size_t i = 0; i < values.size(); ++i)
    index[i] = static_cast<int64_t>(distinct.Rank(values[i]));
  std::string bytes(1, static_cast<char>(kDictionary));
  PutVarint(dictionary.size(), &bytes);
  AppendColumn(dictionary.span(), &bytes);
  AppendIntegers(indices.span(), &bytes);
  if (static_cast<double>(bytes.size() * 8) >= other.bits) return false;
  out->append(bytes);
  return true;
}

// Whether at most about half of the values are distinct: a few that meet in a place count as one,
// which is found without a branch that the processor would have to guess.
bool Repeats(const Sample& sample) {
  constexpr unsigned kPlaceBits = 10;
  std::array<uint8_t, size_t{1} << kPlaceBits> seen = {};
  size_t distinct = 0;
  for (const double value : sample.values()) {
    uint8_t& place = seen[PlaceOf(Bits(value), kPlaceBits)];
    distinct += 1U - place;
    place = 1;
  }
  return distinct <= sample.values().size() / 2;
}

// The values must not all be equal.
void AppendColumn(std::span<const double> values, std::string* out) {
  if (AllEqual(values)) return AppendConstant(values[0], out);
  const Sample sample(values);
  const bool floats = AllFloats(sample.values()) && AllFloats(values);
  // Fewer bits a value than this, and quotients are taken without asking what else there is.
  constexpr double kFew = 14;
  const auto count = static_cast<double>(values.size());
  Choice best;
  const auto quotients = ChooseQuotients(sample, floats);
  if (quotients && quotients->bits < kFew * count) {
    best = *quotients;
  } else {
    best.plan = PlanOrdered(sample, floats);
    best.bits = best.plan.bits;
    if (quotients && quotients->bits < best.bits) best = *quotients;
  }
  const size_t begin = out->size();
  constexpr size_t kFewest = 32;
  const bool done = (values.size() >= kFewest && best.bits > 2 * count && Repeats(sample) &&
                     AppendDictionary(values, best, out)) ||
                    (best.encoding == kQuotient && AppendQuotients(values, best, out));
  if (!done) {
    if (best.encoding != kOrdered) best.plan = PlanOrdered(sample, floats);
    AppendOrdered(values, floats, best.plan, out);
  }
  if (out->size() - begin > 1 + values.size_bytes()) {
    out->resize(begin);
    AppendRaw(values, out);
  }
}

constexpr uint64_t kSign = uint64_t{1} << 63;

// The gap that is left out of the column; nullopt if nothing is.
std::optional<uint64_t> FindGap(std::span<const double> values) {
  constexpr uint64_t kExponent = 0x7ff0000000000000;
  // Mostly there is none, and several values are tested at once: adding 1 to an exponent of ones
  // overflows it.
  uint64_t overflow = 0;
  for (const double value : values) overflow |= (Bits(value) & ~kSign) + (uint64_t{1} << 52);
  if ((overflow & kSign) == 0) return std::nullopt;
  std::optional<uint64_t> found;
  for (const double value : values) {
    const uint64_t bits = Bits(value);
    if ((bits & kExponent) != kExponent) continue;
    if (bits == kStaleMarkerBits) return bits;
    if (!found) found = bits;
  }
  return found;
}

void AppendGaps(std::span<const double> values, uint64_t gap, std::string* out) {
  std::vector<int64_t> present_runs;
  std::vector<int64_t> gap_runs;
  std::vector<double> present;
  for (size_t i = 0; i < values.size();) {
    const size_t begin = i;
    while (i < values.size() && Bits(values[i]) != gap) ++i;
    present.insert(present.end(), values.begin() + static_cast<ptrdiff_t>(begin),
                   values.begin() + static_cast<ptrdiff_t>(i));
    present_runs.push_back(static_cast<int64_t>(i - begin));
    const size_t end = i;
    while (i < values.size() && Bits(values[i]) == gap) ++i;
    gap_runs.push_back(static_cast<int64_t>(i - end));
  }
  out->push_back(static_cast<char>(kGaps));
  const auto usual = std::find(kUsualGaps.begin(), kUsualGaps.end(), gap);
  out->push_back(static_cast<char>(usual - kUsualGaps.begin()));
  if (usual == kUsualGaps.end()) PutLe64(gap, out);
  PutVarint(present_runs.size(), out);
  AppendIntegers(present_runs, out);
  AppendIntegers(gap_runs, out);
  if (!present.empty()) AppendColumn(present, out);
}

}  // namespace

void ColumnCodec::EncodeValues(std::span<const double> values, std::string* out) {
  if (values.empty()) return;
  if (AllEqual(values)) return AppendConstant(values[0], out);
  if (const auto gap = FindGap(values)) return AppendGaps(values, *gap, out);
  AppendColumn(values, out);
}

}  // namespace tacho::storage
