// Doubles as bytes. See docs/storage_format.md for the bytes; each encoding is one of
//
//   raw         what nothing else can shorten
//   constant    all values are equal
//   gaps        values that are not there (or not finite) are left out, and said where
//   ordered     bits of doubles or floats as integers
//   quotient    integers over one divisor: see quotient.h
//   dictionary  the distinct values, and which of them each is
//
// The last three come down to columns of integers. A sample of the column decides between them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "storage/bit_stream.h"
#include "storage/column_codec.h"
#include "storage/integer_codec.h"
#include "storage/quotient.h"
#include "storage/series.h"

namespace tacho::storage {
namespace {

enum Encoding : uint8_t {
  kRaw = 0,
  kConstant = 1,
  kGaps = 2,
  kOrdered = 3,
  kQuotient = 4,
  kDictionary = 5,
};
constexpr uint8_t kEncodingMask = 7;
constexpr uint8_t kFloats = 1 << 3;
constexpr uint8_t kExceptions = 1 << 4;
constexpr uint8_t kNear = 1 << 5;

// Columns in columns: gaps, in them quotients, in them exceptions.
constexpr int kMaxDepth = 4;

constexpr size_t kSampleRun = 48;
constexpr size_t kSampleRuns = 4;
constexpr size_t kMaxSample = kSampleRun * kSampleRuns;

// What a gap is; another value is written whole.
constexpr std::array<uint64_t, 2> kUsualGaps = {kStaleMarkerBits, 0x7ff8000000000000};

uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }

bool AllEqual(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [&](double value) { return Bits(value) == Bits(values[0]); });
}

bool AllFloats(std::span<const double> values) {
  // Conversion quiets signalling NaNs, so those fail the comparison.
  uint64_t lost = 0;
  for (const double value : values) {
    lost |= Bits(static_cast<double>(static_cast<float>(value))) ^ Bits(value);
  }
  return lost == 0;
}

// Runs of neighbours from all over the column, or all of it.
struct Sample {
  explicit Sample(std::span<const double> column) : of(column.size()) {
    if (column.size() <= kMaxSample) {
      values.assign(column.begin(), column.end());
      run = column.size();
      return;
    }
    for (size_t i = 0; i < kSampleRuns; ++i) {
      const size_t begin = (column.size() - kSampleRun) * i / (kSampleRuns - 1);
      const auto part = column.subspan(begin, kSampleRun);
      values.insert(values.end(), part.begin(), part.end());
    }
  }
  IntegerPlan Plan(std::span<const int64_t> integers) const {
    return IntegerPlan::Of(integers, run, of);
  }

  size_t of;
  size_t run = kSampleRun;
  std::vector<double> values;
};

void AppendColumn(std::span<const double> values, std::string* out);

void AppendRaw(std::span<const double> values, std::string* out) {
  out->push_back(static_cast<char>(kRaw));
  out->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void AppendConstant(double value, std::string* out) {
  // A short decimal takes less than its bits.
  const std::span<const double> one(&value, 1);
  if (const auto form = FindQuotientForm(one, AllFloats(one)); form && !form->near) {
    if (const auto quotients = Quotients::Of(one, *form);
        quotients && quotients->exceptions.empty()) {
      std::string bytes(1, static_cast<char>(kQuotient | (form->floats ? kFloats : 0)));
      PutVarint(form->divisor, &bytes);
      // An integer column of equal integers does not know how many they are.
      AppendIntegers(quotients->integers, {}, &bytes);
      if (bytes.size() <= sizeof(double)) {
        out->append(bytes);
        return;
      }
    }
  }
  out->push_back(static_cast<char>(kConstant));
  PutLe64(Bits(value), out);
}

std::vector<int64_t> OrderedIntegers(std::span<const double> values, bool floats) {
  std::vector<int64_t> integers(values.size());
  if (floats) {
    for (size_t i = 0; i < values.size(); ++i) {
      integers[i] = OrderedFloat(static_cast<float>(values[i]));
    }
  } else {
    for (size_t i = 0; i < values.size(); ++i) integers[i] = Ordered(values[i]);
  }
  return integers;
}

void AppendOrdered(std::span<const double> values, bool floats, const IntegerPlan& plan,
                   std::string* out) {
  out->push_back(static_cast<char>(kOrdered | (floats ? kFloats : 0)));
  AppendIntegers(OrderedIntegers(values, floats), plan, out);
}

// How a column is written, and what it is thought to take.
struct Choice {
  Encoding encoding = kOrdered;
  double bits = 0;
  IntegerPlan plan;
  QuotientForm form;
};

// Appends nothing and returns false if the sample was not like the column.
bool AppendQuotients(std::span<const double> values, const Choice& choice, std::string* out) {
  const QuotientForm& form = choice.form;
  const auto quotients = Quotients::Of(values, form);
  if (!quotients) return false;
  const auto& exceptions = quotients->exceptions;
  out->push_back(static_cast<char>(kQuotient | (form.floats ? kFloats : 0) |
                                   (exceptions.empty() ? 0 : kExceptions) |
                                   (form.near ? kNear : 0)));
  PutVarint(form.divisor, out);
  AppendIntegers(quotients->integers, choice.plan, out);
  if (form.near) AppendIntegers(quotients->steps, {.order = 0, .folded = true}, out);
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

void ConsiderQuotients(const Sample& sample, bool floats, Choice* best) {
  const auto form = FindQuotientForm(sample.values, floats);
  if (!form) return;
  const auto quotients = Quotients::Of(sample.values, *form);
  if (!quotients) return;
  Choice choice{kQuotient, 0, sample.Plan(quotients->integers), *form};
  constexpr double kException = 76;
  choice.bits = choice.plan.bits + 16 +
                kException * static_cast<double>(quotients->exceptions.size() * sample.of) /
                    static_cast<double>(sample.values.size());
  if (form->near) choice.bits += sample.Plan(quotients->steps).bits;
  if (choice.bits < best->bits) *best = choice;
}

// Distinct values in order, if they are few.
std::optional<std::vector<int64_t>> Distinct(std::span<const double> values, size_t most) {
  absl::flat_hash_map<uint64_t, uint8_t> seen;
  for (const double value : values) {
    seen.emplace(Bits(value), 0);
    if (seen.size() > most) return std::nullopt;
  }
  std::vector<int64_t> distinct;
  distinct.reserve(seen.size());
  for (const auto& [bits, unused] : seen) distinct.push_back(Ordered(std::bit_cast<double>(bits)));
  std::sort(distinct.begin(), distinct.end());
  return distinct;
}

// Appends nothing and returns false if another choice is better.
bool AppendDictionary(std::span<const double> values, const Choice& other, std::string* out) {
  const auto distinct = Distinct(values, values.size() / 4);
  if (!distinct) return false;
  absl::flat_hash_map<uint64_t, int64_t> index;
  std::vector<double> dictionary;
  for (const int64_t ordered : *distinct) {
    const double value = FromOrdered(ordered);
    index.emplace(Bits(value), static_cast<int64_t>(dictionary.size()));
    dictionary.push_back(value);
  }
  std::vector<int64_t> indices(values.size());
  for (size_t i = 0; i < values.size(); ++i) indices[i] = index.find(Bits(values[i]))->second;
  std::string bytes(1, static_cast<char>(kDictionary));
  PutVarint(dictionary.size(), &bytes);
  AppendColumn(dictionary, &bytes);
  AppendIntegers(indices, &bytes);
  if (static_cast<double>(bytes.size() * 8) >= other.bits) return false;
  out->append(bytes);
  return true;
}

// Of values that are not all equal.
void AppendColumn(std::span<const double> values, std::string* out) {
  if (AllEqual(values)) return AppendConstant(values[0], out);
  const Sample sample(values);
  const bool floats = AllFloats(sample.values) && AllFloats(values);
  Choice best;
  best.plan = sample.Plan(OrderedIntegers(sample.values, floats));
  best.bits = best.plan.bits;
  ConsiderQuotients(sample, floats, &best);
  const size_t begin = out->size();
  constexpr size_t kFewest = 32;
  const bool repeats =
      values.size() >= kFewest && Distinct(sample.values, sample.values.size() / 2).has_value();
  const bool done = (repeats && best.bits > 2 * static_cast<double>(values.size()) &&
                     AppendDictionary(values, best, out)) ||
                    (best.encoding == kQuotient && AppendQuotients(values, best, out));
  if (!done) {
    if (best.encoding != kOrdered) best.plan = sample.Plan(OrderedIntegers(sample.values, floats));
    AppendOrdered(values, floats, best.plan, out);
  }
  if (out->size() - begin > 1 + values.size_bytes()) {
    out->resize(begin);
    AppendRaw(values, out);
  }
}

// What is left out of the column; nullopt if nothing is.
std::optional<uint64_t> FindGap(std::span<const double> values) {
  constexpr uint64_t kExponent = 0x7ff0000000000000;
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

bool TakeColumn(ByteReader* in, int depth, std::span<double> values);

bool TakeGaps(ByteReader* in, int depth, std::span<double> values) {
  const uint8_t kind = in->Byte();
  if (kind > kUsualGaps.size()) return false;
  const uint64_t gap = kind < kUsualGaps.size() ? kUsualGaps[kind] : in->Le64();
  const uint64_t runs = in->Varint();
  if (!in->ok() || runs > values.size()) return false;
  std::vector<int64_t> present_runs(runs);
  std::vector<int64_t> gap_runs(runs);
  if (!TakeIntegers(in, present_runs) || !TakeIntegers(in, gap_runs)) return false;
  size_t left = values.size();
  size_t count = 0;
  for (size_t i = 0; i < runs; ++i) {
    for (const int64_t run : {present_runs[i], gap_runs[i]}) {
      if (run < 0 || static_cast<uint64_t>(run) > left) return false;
      left -= static_cast<size_t>(run);
    }
    count += static_cast<size_t>(present_runs[i]);
  }
  if (left != 0) return false;
  std::vector<double> present(count);
  if (count > 0 && !TakeColumn(in, depth + 1, present)) return false;
  auto from = present.begin();
  auto to = values.begin();
  for (size_t i = 0; i < runs; ++i) {
    to = std::copy_n(from, present_runs[i], to);
    from += present_runs[i];
    to = std::fill_n(to, gap_runs[i], std::bit_cast<double>(gap));
  }
  return true;
}

bool TakeOrdered(ByteReader* in, bool floats, std::span<double> values) {
  std::vector<int64_t> integers(values.size());
  if (!TakeIntegers(in, integers)) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = floats ? static_cast<double>(FromOrderedFloat(static_cast<int32_t>(integers[i])))
                       : FromOrdered(integers[i]);
  }
  return true;
}

bool TakeExceptions(ByteReader* in, int depth, std::span<double> values) {
  const uint64_t count = in->Varint();
  if (!in->ok() || count > values.size()) return false;
  std::vector<int64_t> rows(count);
  std::vector<double> kept(count);
  if (!TakeIntegers(in, rows) || !TakeColumn(in, depth + 1, kept)) return false;
  for (size_t i = 0; i < count; ++i) {
    if (rows[i] < 0 || static_cast<uint64_t>(rows[i]) >= values.size()) return false;
    values[static_cast<size_t>(rows[i])] = kept[i];
  }
  return true;
}

bool TakeQuotients(ByteReader* in, uint8_t flags, int depth, std::span<double> values) {
  QuotientForm form;
  form.divisor = in->Varint();
  form.floats = (flags & kFloats) != 0;
  std::vector<int64_t> integers(values.size());
  if (form.divisor == 0 || form.divisor > kMaxQuotientDivisor || !TakeIntegers(in, integers)) {
    return false;
  }
  if ((flags & kNear) != 0) {
    std::vector<int64_t> steps(values.size());
    if (!TakeIntegers(in, steps)) return false;
    for (size_t i = 0; i < values.size(); ++i) values[i] = form.Value(integers[i], steps[i]);
  } else {
    const auto divisor = static_cast<double>(form.divisor);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(integers[i]) / divisor;
    }
    if (form.floats) {
      for (double& value : values) value = static_cast<double>(static_cast<float>(value));
    }
  }
  return (flags & kExceptions) == 0 || TakeExceptions(in, depth, values);
}

bool TakeDictionary(ByteReader* in, int depth, std::span<double> values) {
  const uint64_t size = in->Varint();
  if (!in->ok() || size == 0 || size > values.size()) return false;
  std::vector<double> dictionary(size);
  std::vector<int64_t> indices(values.size());
  if (!TakeColumn(in, depth + 1, dictionary) || !TakeIntegers(in, indices)) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (static_cast<uint64_t>(indices[i]) >= size) return false;
    values[i] = dictionary[static_cast<size_t>(indices[i])];
  }
  return true;
}

bool TakeColumn(ByteReader* in, int depth, std::span<double> values) {
  if (depth == kMaxDepth) return false;
  const uint8_t head = in->Byte();
  if (!in->ok()) return false;
  switch (head & kEncodingMask) {
    case kRaw: {
      const absl::string_view bytes = in->Bytes(values.size_bytes());
      if (in->ok()) std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
      return in->ok();
    }
    case kConstant:
      std::fill(values.begin(), values.end(), std::bit_cast<double>(in->Le64()));
      return in->ok();
    case kGaps:
      return TakeGaps(in, depth, values);
    case kOrdered:
      return TakeOrdered(in, (head & kFloats) != 0, values);
    case kQuotient:
      return TakeQuotients(in, head, depth, values);
    case kDictionary:
      return TakeDictionary(in, depth, values);
    default:
      return false;
  }
}

}  // namespace

void ColumnCodec::EncodeValues(std::span<const double> values, std::string* out) {
  if (values.empty()) return;
  if (AllEqual(values)) return AppendConstant(values[0], out);
  if (const auto gap = FindGap(values)) return AppendGaps(values, *gap, out);
  AppendColumn(values, out);
}

absl::Status ColumnCodec::DecodeValues(absl::string_view bytes, size_t count,
                                       std::vector<double>* out) {
  out->assign(count, 0);
  std::string padded(bytes);
  padded.resize(bytes.size() + kBitPadding);
  ByteReader in(absl::string_view(padded.data(), bytes.size()));
  if ((count == 0 || TakeColumn(&in, 0, *out)) && in.AtEnd()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("a column of ", count, " values in ", bytes.size(), " bytes is damaged"));
}

}  // namespace tacho::storage
