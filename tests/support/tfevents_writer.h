// Makes event files as TensorFlow, PyTorch and others write them, for tests.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::testing {

// Pieces of protobuf messages, to be joined with +.
std::string Varint(uint64_t value);
std::string VarintField(uint32_t number, uint64_t value);
std::string BytesField(uint32_t number, absl::string_view bytes);
std::string Fixed32Field(uint32_t number, uint32_t bits);
std::string Fixed64Field(uint32_t number, uint64_t bits);
std::string FloatField(uint32_t number, float value);
std::string DoubleField(uint32_t number, double value);

// A payload in its frame: length, checksums.
std::string Record(absl::string_view payload);

// An Event with a Summary of these values (each encoded without its own field header).
std::string SummaryEvent(double wall_time, int64_t step, absl::string_view value);
std::string SimpleValue(absl::string_view tag, float value);
std::string TensorValue(absl::string_view tag, absl::string_view tensor,
                        absl::string_view plugin = "");
// A value whose metadata and histogram make it no scalar.
std::string HistogramValue(absl::string_view tag);

// Whole records.
std::string FileVersionRecord(double wall_time);
std::string ScalarRecord(double wall_time, int64_t step, absl::string_view tag, float value);
std::string SessionStartRecord(double wall_time, int64_t step);

// Files. Failures are test failures.
void WriteFile(const std::string& path, absl::string_view bytes);
void AppendToFile(const std::string& path, absl::string_view bytes);

}  // namespace tacho::testing
