#include "tests/support/tfevents_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "client/tfevents/record.h"

namespace tacho::testing {
namespace {

std::string Fixed(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return out;
}

std::string Key(uint32_t number, uint32_t type) { return Varint(uint64_t{number} << 3 | type); }

void Write(const std::string& path, absl::string_view bytes, std::ios::openmode mode) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream out(path, std::ios::binary | mode);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  ASSERT_TRUE(out.good()) << path;
}

}  // namespace

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

std::string VarintField(uint32_t number, uint64_t value) { return Key(number, 0) + Varint(value); }

std::string BytesField(uint32_t number, absl::string_view bytes) {
  return Key(number, 2) + Varint(bytes.size()) + std::string(bytes);
}

std::string Fixed32Field(uint32_t number, uint32_t bits) { return Key(number, 5) + Fixed(bits, 4); }

std::string Fixed64Field(uint32_t number, uint64_t bits) { return Key(number, 1) + Fixed(bits, 8); }

std::string FloatField(uint32_t number, float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return Fixed32Field(number, bits);
}

std::string DoubleField(uint32_t number, double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return Fixed64Field(number, bits);
}

std::string Record(absl::string_view payload) {
  const std::string length = Fixed(payload.size(), 8);
  return length + Fixed(client::MaskedCrc32c(length), 4) + std::string(payload) +
         Fixed(client::MaskedCrc32c(payload), 4);
}

std::string SummaryEvent(double wall_time, int64_t step, absl::string_view value) {
  return DoubleField(1, wall_time) + VarintField(2, static_cast<uint64_t>(step)) +
         BytesField(5, BytesField(1, value));
}

std::string SimpleValue(absl::string_view tag, float value) {
  return BytesField(1, tag) + FloatField(2, value);
}

std::string TensorValue(absl::string_view tag, absl::string_view tensor, absl::string_view plugin) {
  std::string value = BytesField(1, tag) + BytesField(8, tensor);
  if (!plugin.empty()) value += BytesField(9, BytesField(1, BytesField(1, plugin)));
  return value;
}

std::string HistogramValue(absl::string_view tag) {
  return BytesField(1, tag) + BytesField(5, DoubleField(1, -1.0) + DoubleField(2, 1.0)) +
         BytesField(9, BytesField(1, BytesField(1, "histograms")));
}

std::string FileVersionRecord(double wall_time) {
  return Record(DoubleField(1, wall_time) + BytesField(3, "brain.Event:2"));
}

std::string ScalarRecord(double wall_time, int64_t step, absl::string_view tag, float value) {
  return Record(SummaryEvent(wall_time, step, SimpleValue(tag, value)));
}

std::string SessionStartRecord(double wall_time, int64_t step) {
  return Record(DoubleField(1, wall_time) + VarintField(2, static_cast<uint64_t>(step)) +
                BytesField(7, VarintField(1, 1)));
}

void WriteFile(const std::string& path, absl::string_view bytes) {
  Write(path, bytes, std::ios::trunc);
}

void AppendToFile(const std::string& path, absl::string_view bytes) {
  Write(path, bytes, std::ios::app);
}

}  // namespace tacho::testing
