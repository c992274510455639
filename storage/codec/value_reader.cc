// Decodes columns of values.
#include <algorithm>
#include <array>
#include <bit>

#include "absl/strings/str_cat.h"
#include "storage/codec/bit_stream.h"
#include "storage/codec/column_codec.h"
#include "storage/codec/integer_codec.h"
#include "storage/codec/quotient.h"
#include "storage/codec/value_encoding.h"

namespace tacho::storage {
namespace {

// Columns in columns: gaps, in them quotients, in them exceptions.
constexpr int kMaxDepth = 4;

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
  // All together in front, then to where they belong, the last run first.
  if (count > 0 && !TakeColumn(in, depth + 1, values.first(count))) return false;
  auto from = values.begin() + static_cast<ptrdiff_t>(count);
  auto to = values.end();
  for (size_t i = runs; i-- > 0;) {
    std::fill(to - gap_runs[i], to, std::bit_cast<double>(gap));
    to = std::move_backward(from - present_runs[i], from, to - gap_runs[i]);
    from -= present_runs[i];
  }
  return true;
}

bool TakeOrdered(ByteReader* in, bool floats, std::span<double> values) {
  Scratch<int64_t> integers(values.size());
  if (!TakeIntegers(in, integers.span())) return false;
  const std::span<const int64_t> ordered = integers.span();
  if (floats) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(FromOrderedFloat(static_cast<int32_t>(ordered[i])));
    }
  } else {
    for (size_t i = 0; i < values.size(); ++i) values[i] = FromOrdered(ordered[i]);
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

// Several at once, which conversion of integers of 64 bits is not: the sum of an integer below 2^51
// and the bits of a large double are those of their sum. False if an integer is not below it.
template <typename Make>
bool MakeDoubles(std::span<const int64_t> integers, std::span<double> values, Make make) {
  constexpr double kLarge = 6755399441055744.0;  // 1.5 * 2^52
  uint64_t outside = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto n = static_cast<uint64_t>(integers[i]);
    outside |= n + (uint64_t{1} << 51);
    values[i] = make(std::bit_cast<double>(Bits(kLarge) + n) - kLarge);
  }
  return outside >> 52 == 0;
}

void MakeQuotients(std::span<const int64_t> integers, const QuotientForm& form,
                   std::span<double> values) {
  const auto divisor = static_cast<double>(form.divisor);
  const auto all = [&](auto make) {
    if (MakeDoubles(integers, values, make)) return;
    for (size_t i = 0; i < values.size(); ++i) values[i] = make(static_cast<double>(integers[i]));
  };
  if (form.divisor == 1) {
    all([](double n) { return n; });
  } else {
    all([=](double n) { return n / divisor; });
  }
  if (form.floats) RoundToFloats(values);
}

void TakeSteps(std::span<const int64_t> steps, const QuotientForm& form, std::span<double> values) {
  if (!form.floats) {
    // Above 0, bits are in the order of values.
    uint64_t signs = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t stepped = Bits(values[i]) + static_cast<uint64_t>(steps[i]);
      signs |= Bits(values[i]) | stepped;
      values[i] = std::bit_cast<double>(stepped);
    }
    if (signs >> 63 == 0) return;
    // Some were below: all of them again, from where they were.
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::bit_cast<double>(Bits(values[i]) - static_cast<uint64_t>(steps[i]));
    }
  }
  for (size_t i = 0; i < values.size(); ++i) values[i] = form.Near(values[i], steps[i]);
}

bool TakeQuotients(ByteReader* in, uint8_t flags, int depth, std::span<double> values) {
  QuotientForm form;
  form.divisor = in->Varint();
  form.floats = (flags & kFloats) != 0;
  Scratch<int64_t> integers(values.size());
  if (form.divisor == 0 || form.divisor > kMaxQuotientDivisor ||
      !TakeIntegers(in, integers.span())) {
    return false;
  }
  MakeQuotients(integers.span(), form, values);
  if ((flags & kNear) != 0) {
    const std::span<int64_t> steps = integers.span();
    if (!TakeIntegers(in, steps)) return false;
    TakeSteps(steps, form, values);
  }
  return (flags & kExceptions) == 0 || TakeExceptions(in, depth, values);
}

bool TakeDictionary(ByteReader* in, int depth, std::span<double> values) {
  const uint64_t size = in->Varint();
  if (!in->ok() || size == 0 || size > values.size()) return false;
  Scratch<double, 256> dictionary(size);
  Scratch<int64_t> scratch(values.size());
  const std::span<int64_t> indices = scratch.span();
  if (!TakeColumn(in, depth + 1, dictionary.span()) || !TakeIntegers(in, indices)) return false;
  const double* const from = dictionary.data();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto index = static_cast<uint64_t>(indices[i]);
    if (index >= size) return false;
    values[i] = from[index];
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

absl::Status ColumnCodec::DecodeValues(absl::string_view bytes, size_t count,
                                       std::vector<double>* out) {
  out->resize(count);
  Padded padded(bytes);
  ByteReader in(padded.bytes());
  if ((count == 0 || TakeColumn(&in, 0, *out)) && in.AtEnd()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("a column of ", count, " values in ", bytes.size(), " bytes is damaged"));
}

}  // namespace tacho::storage
