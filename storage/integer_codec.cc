// Integers (times, steps, scaled decimals) as differences packed in blocks.
//
//   byte 0      encoding: 1 differences, 2 differences of differences, 3 the integers themselves
//   zig-zag varint   first integer (and, for encoding 2, the first difference; for 3, nothing)
//   varint      g, the greatest common divisor of the differences; 0 if all of them are equal, and
//               then only their zig-zag varint follows
//   blocks      of 128 differences / g: zig-zag varint of the smallest, 1 byte of width, then the
//               differences minus the smallest, packed with that width
//
// All arithmetic is modulo 2^64, so every int64 round-trips.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "storage/bit_packing.h"
#include "storage/bytes.h"
#include "storage/column_codec.h"

namespace tacho::storage {
namespace {

constexpr size_t kBlock = 128;
constexpr uint8_t kDelta = 1;
constexpr uint8_t kDeltaOfDelta = 2;
constexpr uint8_t kPlain = 3;

uint64_t Magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

// out[i] = in[i + 1] - in[i].
std::vector<int64_t> Differences(std::span<const int64_t> in) {
  std::vector<int64_t> out(in.size() - 1);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<int64_t>(static_cast<uint64_t>(in[i + 1]) - static_cast<uint64_t>(in[i]));
  }
  return out;
}

void EncodeBlocks(std::span<const int64_t> differences, std::string* out) {
  if (differences.empty()) return;
  if (std::all_of(differences.begin(), differences.end(),
                  [&](int64_t d) { return d == differences[0]; })) {
    PutVarint(0, out);
    PutVarint(ZigZag(differences[0]), out);
    return;
  }
  uint64_t divisor = 0;
  for (const int64_t d : differences) divisor = std::gcd(divisor, Magnitude(d));
  // INT64_MIN's magnitude does not fit a signed divisor.
  if (divisor > static_cast<uint64_t>(INT64_MAX)) divisor = 1;
  PutVarint(divisor, out);
  uint64_t packed[kBlock];
  for (size_t begin = 0; begin < differences.size(); begin += kBlock) {
    const auto block = differences.subspan(begin, std::min(kBlock, differences.size() - begin));
    const auto quotient = [&](int64_t d) { return d / static_cast<int64_t>(divisor); };
    int64_t smallest = INT64_MAX;
    for (const int64_t d : block) smallest = std::min(smallest, quotient(d));
    uint64_t all_bits = 0;
    for (size_t i = 0; i < block.size(); ++i) {
      packed[i] = static_cast<uint64_t>(quotient(block[i])) - static_cast<uint64_t>(smallest);
      all_bits |= packed[i];
    }
    const auto width = static_cast<unsigned>(std::bit_width(all_bits));
    PutVarint(ZigZag(smallest), out);
    out->push_back(static_cast<char>(width));
    PackBits({packed, block.size()}, width, out);
  }
}

bool DecodeBlocks(ByteReader* in, std::span<int64_t> differences) {
  if (differences.empty()) return in->ok();
  const uint64_t divisor = in->Varint();
  if (divisor == 0) {
    std::fill(differences.begin(), differences.end(), UnZigZag(in->Varint()));
    return in->ok();
  }
  uint64_t packed[kBlock];
  for (size_t begin = 0; begin < differences.size(); begin += kBlock) {
    const auto block = differences.subspan(begin, std::min(kBlock, differences.size() - begin));
    const auto smallest = static_cast<uint64_t>(UnZigZag(in->Varint()));
    const unsigned width = in->Byte();
    if (width > 64) return false;
    const absl::string_view bytes = in->Bytes(PackedSize(block.size(), width));
    if (!in->ok()) return false;
    UnpackBits(bytes, width, {packed, block.size()});
    for (size_t i = 0; i < block.size(); ++i) {
      block[i] = static_cast<int64_t>((packed[i] + smallest) * divisor);
    }
  }
  return true;
}

}  // namespace

void ColumnCodec::EncodeIntegers(std::span<const int64_t> integers, std::string* out) {
  if (integers.empty()) return;
  const std::vector<int64_t> first_order =
      integers.size() > 1 ? Differences(integers) : std::vector<int64_t>();
  std::string best(1, static_cast<char>(kDelta));
  PutVarint(ZigZag(integers[0]), &best);
  EncodeBlocks(first_order, &best);
  if (first_order.size() > 1) {
    std::string second(1, static_cast<char>(kDeltaOfDelta));
    PutVarint(ZigZag(integers[0]), &second);
    PutVarint(ZigZag(first_order[0]), &second);
    EncodeBlocks(Differences(first_order), &second);
    if (second.size() < best.size()) best.swap(second);
  }
  // Differences of integers in no order are wider than the integers.
  std::string plain(1, static_cast<char>(kPlain));
  EncodeBlocks(integers, &plain);
  if (plain.size() < best.size()) best.swap(plain);
  out->append(best);
}

absl::Status ColumnCodec::DecodeIntegers(absl::string_view bytes, size_t count,
                                         std::vector<int64_t>* out) {
  const auto damaged = [&] {
    return absl::DataLossError(
        absl::StrCat("a column of ", count, " integers in ", bytes.size(), " bytes is damaged"));
  };
  out->assign(count, 0);
  if (count == 0) return bytes.empty() ? absl::OkStatus() : damaged();
  ByteReader in(bytes);
  const uint8_t encoding = in.Byte();
  if (encoding == kPlain) {
    return DecodeBlocks(&in, *out) && in.AtEnd() ? absl::OkStatus() : damaged();
  }
  (*out)[0] = UnZigZag(in.Varint());
  const auto rest = std::span(*out).subspan(1);
  if (encoding == kDelta) {
    if (!DecodeBlocks(&in, rest)) return damaged();
  } else if (encoding == kDeltaOfDelta && count > 2) {
    rest[0] = UnZigZag(in.Varint());
    if (!DecodeBlocks(&in, rest.subspan(1))) return damaged();
    for (size_t i = 1; i < rest.size(); ++i) {
      rest[i] =
          static_cast<int64_t>(static_cast<uint64_t>(rest[i]) + static_cast<uint64_t>(rest[i - 1]));
    }
  } else {
    return damaged();
  }
  if (!in.AtEnd()) return damaged();
  for (size_t i = 1; i < count; ++i) {
    (*out)[i] = static_cast<int64_t>(static_cast<uint64_t>((*out)[i]) +
                                     static_cast<uint64_t>((*out)[i - 1]));
  }
  return absl::OkStatus();
}

}  // namespace tacho::storage
