#include "client/tfevents/writer.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "client/tfevents/record.h"
#include "client/tfevents/tensor.h"

namespace tacho::client {
namespace {

// Numbers of fields in tensorflow.Event, Summary and Summary.Value, with their wire types.
enum Key : unsigned char {
  kWallTime = 1 << 3 | 1,
  kStep = 2 << 3 | 0,
  kFileVersion = 3 << 3 | 2,
  kSummary = 5 << 3 | 2,
  kSummaryValueKey = 1 << 3 | 2,
  kTag = 1 << 3 | 2,
  kSimpleValue = 2 << 3 | 5,
};

template <typename Integer>
void AppendFixed(Integer value, std::string* out) {
  for (size_t i = 0; i < sizeof(value); ++i) out->push_back(static_cast<char>(value >> 8 * i));
}

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendBytes(Key key, absl::string_view bytes, std::string* out) {
  out->push_back(static_cast<char>(key));
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

void AppendRecord(absl::string_view payload, std::string* file) {
  std::string length;
  AppendFixed(static_cast<uint64_t>(payload.size()), &length);
  *file += length;
  AppendFixed(MaskedCrc32c(length), file);
  file->append(payload.data(), payload.size());
  AppendFixed(MaskedCrc32c(payload), file);
}

void AppendWallTime(double wall_time, std::string* out) {
  uint64_t bits = 0;
  std::memcpy(&bits, &wall_time, sizeof(bits));
  out->push_back(static_cast<char>(kWallTime));
  AppendFixed(bits, out);
}

}  // namespace

std::string FirstRecord(double wall_time) {
  std::string event;
  AppendWallTime(wall_time, &event);
  AppendBytes(kFileVersion, "brain.Event:2", &event);
  std::string file;
  AppendRecord(event, &file);
  return file;
}

void AppendScalar(const ScalarEvent& event, std::string* file) {
  std::string value;
  AppendBytes(kTag, event.tag, &value);
  value.push_back(static_cast<char>(kSimpleValue));
  AppendFixed(event.value_bits, &value);
  std::string summary;
  AppendBytes(kSummaryValueKey, value, &summary);
  std::string payload;
  AppendWallTime(event.wall_time, &payload);
  payload.push_back(static_cast<char>(kStep));
  AppendVarint(static_cast<uint64_t>(event.step), &payload);
  AppendBytes(kSummary, summary, &payload);
  AppendRecord(payload, file);
}

uint32_t NarrowToFloat(double value, bool* exact) {
  uint64_t wide = 0;
  std::memcpy(&wide, &value, sizeof(wide));
  uint32_t narrow = 0;
  if (std::isnan(value)) {
    const auto payload = static_cast<uint32_t>(wide >> 29 & 0x7fffff);
    // Without a payload it would be infinity.
    narrow =
        static_cast<uint32_t>(wide >> 63) << 31 | 0x7f800000 | (payload == 0 ? 0x400000 : payload);
  } else {
    const auto rounded = static_cast<float>(value);
    std::memcpy(&narrow, &rounded, sizeof(narrow));
  }
  *exact = std::bit_cast<uint64_t>(WidenFloat(narrow)) == std::bit_cast<uint64_t>(value);
  return narrow;
}

// A long double holds every nanosecond of int64, and the division is rounded but once more.
double WallTimeOfUnixNs(int64_t unix_ns) {
  return static_cast<double>(static_cast<long double>(unix_ns) / 1e9L);
}

}  // namespace tacho::client
