// Doubles as bytes. Each encoding is tried on the column and the smallest result is kept.
//
//   byte 0   0 raw       8 bytes a value, little-endian
//            1 constant  8 bytes: every value has these bits
//            2 xor64     see XorEncode
//            3 xor32     the same over the bits of floats, for columns whose values are all floats
//            4 decimal   1 byte exponent e, varint number of exceptions, each as varint distance
//            from
//                        the previous one's row (first: the row) and 8 bytes; varint length of an
//                        integer column of the values times 10^e, then that column. An exception's
//                        place in it repeats its neighbour.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "storage/bit_packing.h"
#include "storage/bytes.h"
#include "storage/column_codec.h"
#include "storage/series.h"

namespace tacho::storage {
namespace {

enum Encoding : uint8_t { kRaw = 0, kConstant = 1, kXor64 = 2, kXor32 = 3, kDecimal = 4 };

// Powers of ten that a double holds exactly.
constexpr std::array<double, 16> kPowersOfTen = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }

class BitWriter {
 public:
  explicit BitWriter(std::string* out) : out_(out) {}
  // Lowest bit first; count 0 to 64, higher bits 0.
  void Write(uint64_t value, unsigned count) {
    waiting_ |= static_cast<BitBuffer>(value) << bits_;
    for (bits_ += count; bits_ >= 8; bits_ -= 8, waiting_ >>= 8) {
      out_->push_back(static_cast<char>(static_cast<uint8_t>(waiting_)));
    }
  }
  void Finish() {
    if (bits_ > 0) out_->push_back(static_cast<char>(static_cast<uint8_t>(waiting_)));
  }

 private:
  std::string* const out_;
  BitBuffer waiting_ = 0;
  unsigned bits_ = 0;
};

class BitReader {
 public:
  explicit BitReader(absl::string_view bytes) : bytes_(bytes) {}
  uint64_t Read(unsigned count) {
    while (bits_ < count) {
      if (next_ == bytes_.size()) {
        ok_ = false;
        return 0;
      }
      waiting_ |= static_cast<BitBuffer>(static_cast<uint8_t>(bytes_[next_++])) << bits_;
      bits_ += 8;
    }
    const uint64_t mask = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
    const uint64_t value = static_cast<uint64_t>(waiting_) & mask;
    waiting_ >>= count;
    bits_ -= count;
    return value;
  }
  // All bits were there, and no more than the padding of the last byte is left.
  bool AtEnd() const { return ok_ && next_ == bytes_.size() && bits_ < 8; }

 private:
  const absl::string_view bytes_;
  size_t next_ = 0;
  BitBuffer waiting_ = 0;
  unsigned bits_ = 0;
  bool ok_ = true;
};

// The first word whole; then for each word its xor with the one before: bit 0 if it is zero; 1 0
// and the bits of the current window if it fits; 1 1, 6 bits of trailing zeros, 6 bits of width -
// 1, and that many bits, which become the window. Bits are written lowest first.
template <typename Word>
void XorEncode(std::span<const Word> words, std::string* out) {
  BitWriter writer(out);
  writer.Write(words[0], std::numeric_limits<Word>::digits);
  unsigned trailing = 0;
  unsigned width = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    const Word x = words[i] ^ words[i - 1];
    if (x == 0) {
      writer.Write(0, 1);
      continue;
    }
    const auto x_trailing = static_cast<unsigned>(std::countr_zero(x));
    const auto x_end = static_cast<unsigned>(std::bit_width(x));
    const unsigned x_width = x_end - x_trailing;
    // A window much wider than the word is given up: 12 bits buy a new one.
    if (width != 0 && x_trailing >= trailing && x_end <= trailing + width && width < x_width + 12) {
      writer.Write(0b01, 2);
    } else {
      trailing = x_trailing;
      width = x_width;
      writer.Write(0b11 | (trailing << 2) | ((width - 1) << 8), 14);
    }
    writer.Write(static_cast<uint64_t>(x >> trailing), width);
  }
  writer.Finish();
}

template <typename Word>
bool XorDecode(absl::string_view bytes, std::span<Word> words) {
  BitReader reader(bytes);
  words[0] = static_cast<Word>(reader.Read(std::numeric_limits<Word>::digits));
  unsigned trailing = 0;
  unsigned width = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    words[i] = words[i - 1];
    if (reader.Read(1) == 0) continue;
    if (reader.Read(1) == 1) {
      trailing = static_cast<unsigned>(reader.Read(6));
      width = static_cast<unsigned>(reader.Read(6)) + 1;
    }
    if (width == 0 || trailing + width > std::numeric_limits<Word>::digits) return false;
    words[i] ^= static_cast<Word>(reader.Read(width)) << trailing;
  }
  return reader.AtEnd();
}

// The integer that `value` times 10^e is, if dividing it again gives the very same bits.
std::optional<int64_t> AsDecimal(double value, double power) {
  const double scaled = value * power;
  constexpr double kLargestExact = 9007199254740992.0;           // 2^53
  if (!(std::abs(scaled) < kLargestExact)) return std::nullopt;  // NaN and infinity end here too.
  const double rounded = std::nearbyint(scaled);
  if (Bits(rounded / power) != Bits(value)) return std::nullopt;
  if (rounded == 0 && std::signbit(value)) return std::nullopt;  // No integer is -0.
  return static_cast<int64_t>(rounded);
}

// The exponent that fits most of a sample of the values; nullopt if none fits three quarters.
std::optional<unsigned> ChooseExponent(std::span<const double> values) {
  const size_t stride = std::max<size_t>(1, values.size() / 64);
  std::optional<unsigned> best;
  size_t best_fitting = 0;
  for (unsigned e = 0; e < kPowersOfTen.size(); ++e) {
    size_t fitting = 0;
    size_t sampled = 0;
    for (size_t i = 0; i < values.size(); i += stride, ++sampled) {
      if (AsDecimal(values[i], kPowersOfTen[e])) ++fitting;
    }
    if (fitting > best_fitting && fitting * 4 >= sampled * 3) {
      best = e;
      best_fitting = fitting;
      if (fitting == sampled) break;
    }
  }
  return best;
}

std::optional<std::string> EncodeDecimal(std::span<const double> values) {
  const std::optional<unsigned> exponent = ChooseExponent(values);
  if (!exponent) return std::nullopt;
  std::vector<int64_t> integers(values.size());
  std::string exceptions;
  size_t exception_count = 0;
  size_t previous_exception = 0;
  int64_t previous = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (const auto integer = AsDecimal(values[i], kPowersOfTen[*exponent])) {
      previous = *integer;
    } else {
      PutVarint(i - previous_exception, &exceptions);
      PutLe64(Bits(values[i]), &exceptions);
      previous_exception = i;
      ++exception_count;
    }
    integers[i] = previous;
  }
  std::string out(1, static_cast<char>(kDecimal));
  out.push_back(static_cast<char>(*exponent));
  PutVarint(exception_count, &out);
  out.append(exceptions);
  std::string column;
  ColumnCodec::EncodeIntegers(integers, &column);
  PutString(column, &out);
  return out;
}

bool DecodeDecimal(ByteReader* in, std::vector<double>* out) {
  const uint8_t exponent = in->Byte();
  const uint64_t exception_count = in->Varint();
  if (!in->ok() || exponent >= kPowersOfTen.size() || exception_count > out->size()) return false;
  std::vector<std::pair<size_t, uint64_t>> exceptions;
  size_t row = 0;
  for (uint64_t i = 0; i < exception_count; ++i) {
    const uint64_t distance = in->Varint();
    const uint64_t bits = in->Le64();
    if (!in->ok() || distance >= out->size() - row) return false;
    row += distance;
    exceptions.emplace_back(row, bits);
  }
  std::vector<int64_t> integers;
  const absl::string_view column = in->String();
  if (!in->AtEnd() || !ColumnCodec::DecodeIntegers(column, out->size(), &integers).ok()) {
    return false;
  }
  for (size_t i = 0; i < integers.size(); ++i) {
    (*out)[i] = static_cast<double>(integers[i]) / kPowersOfTen[exponent];
  }
  for (const auto& [at, bits] : exceptions) (*out)[at] = std::bit_cast<double>(bits);
  return true;
}

// The bits of the values as floats, if every value is a float widened (NaN payloads included).
std::optional<std::vector<uint32_t>> AsFloats(std::span<const double> values) {
  std::vector<uint32_t> words(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    // Arithmetic conversion quiets signalling NaNs, so those fail the comparison and stay 64 bit.
    const auto narrow = static_cast<float>(values[i]);
    if (Bits(static_cast<double>(narrow)) != Bits(values[i])) return std::nullopt;
    words[i] = std::bit_cast<uint32_t>(narrow);
  }
  return words;
}

void KeepSmaller(std::string candidate, std::string* best) {
  if (candidate.size() < best->size()) *best = std::move(candidate);
}

}  // namespace

ColumnStats ColumnStats::Of(std::span<const double> values) {
  ColumnStats stats;
  stats.min = std::numeric_limits<double>::infinity();
  stats.max = -std::numeric_limits<double>::infinity();
  for (const double value : values) {
    if (Bits(value) == kStaleMarkerBits) continue;
    if (stats.count++ == 0) stats.first = value;
    stats.last = value;
    if (!std::isfinite(value)) {
      ++stats.non_finite;
      continue;
    }
    stats.min = std::min(stats.min, value);
    stats.max = std::max(stats.max, value);
    stats.sum += value;
  }
  return stats;
}

void ColumnCodec::EncodeValues(std::span<const double> values, std::string* out) {
  if (values.empty()) return;
  if (std::all_of(values.begin(), values.end(),
                  [&](double value) { return Bits(value) == Bits(values[0]); })) {
    out->push_back(static_cast<char>(kConstant));
    PutLe64(Bits(values[0]), out);
    return;
  }
  std::string best(1, static_cast<char>(kRaw));
  best.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  std::vector<uint64_t> words(values.size());
  std::transform(values.begin(), values.end(), words.begin(), Bits);
  std::string candidate(1, static_cast<char>(kXor64));
  XorEncode<uint64_t>(words, &candidate);
  KeepSmaller(std::move(candidate), &best);
  if (const auto floats = AsFloats(values)) {
    candidate.assign(1, static_cast<char>(kXor32));
    XorEncode<uint32_t>(*floats, &candidate);
    KeepSmaller(std::move(candidate), &best);
  }
  if (auto decimal = EncodeDecimal(values)) KeepSmaller(*std::move(decimal), &best);
  out->append(best);
}

absl::Status ColumnCodec::DecodeValues(absl::string_view bytes, size_t count,
                                       std::vector<double>* out) {
  const auto damaged = [&] {
    return absl::DataLossError(
        absl::StrCat("a column of ", count, " values in ", bytes.size(), " bytes is damaged"));
  };
  out->assign(count, 0);
  if (count == 0) return bytes.empty() ? absl::OkStatus() : damaged();
  ByteReader in(bytes);
  bool good = false;
  switch (in.Byte()) {
    case kRaw:
      good = in.ok() && in.rest().size() == count * sizeof(double);
      if (good) std::memcpy(out->data(), in.rest().data(), in.rest().size());
      break;
    case kConstant:
      std::fill(out->begin(), out->end(), std::bit_cast<double>(in.Le64()));
      good = in.AtEnd();
      break;
    case kXor64: {
      std::vector<uint64_t> words(count);
      good = XorDecode<uint64_t>(in.rest(), words);
      std::memcpy(out->data(), words.data(), count * sizeof(double));
      break;
    }
    case kXor32: {
      std::vector<uint32_t> words(count);
      good = XorDecode<uint32_t>(in.rest(), words);
      std::transform(words.begin(), words.end(), out->begin(),
                     [](uint32_t word) { return static_cast<double>(std::bit_cast<float>(word)); });
      break;
    }
    case kDecimal:
      good = DecodeDecimal(&in, out);
      break;
    default:
      break;
  }
  return good ? absl::OkStatus() : damaged();
}

}  // namespace tacho::storage
