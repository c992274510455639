// A sample as Prometheus' messages have it: field 2 of a TimeSeries, in remote read and in both
// versions of remote write (prometheus/prometheus, prompb/types.proto,
// prompb/io/prometheus/write/v2).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "storage/codec/bytes.h"

namespace tacho::server::promread {

// Tags: field number × 8 + wire type.
inline constexpr char kSamplesTag = 0x12;    // TimeSeries.samples, bytes.
inline constexpr char kValueTag = 0x09;      // Sample.value, 64 bits.
inline constexpr char kTimestampTag = 0x10;  // Sample.timestamp, a varint.

// Of a sample without its time.
inline constexpr size_t kSampleFrameBytes = 2 + 1 + sizeof(double) + 1;
inline constexpr size_t kMaxSampleBytes = kSampleFrameBytes + storage::kMaxVarintBytes;

// What AppendSample() appends.
inline size_t SampleBytes(int64_t time_ms) {
  return kSampleFrameBytes + storage::VarintBytes(static_cast<uint64_t>(time_ms));
}

// Put together on the stack, because there are millions of them.
inline void AppendSample(int64_t time_ms, double value, std::string* to) {
  std::array<char, kMaxSampleBytes> bytes;
  auto time = static_cast<uint64_t>(time_ms);
  size_t size = 0;
  bytes[size++] = kSamplesTag;
  bytes[size++] = static_cast<char>(SampleBytes(time_ms) - 2);  // Below 128.
  bytes[size++] = kValueTag;
  std::memcpy(&bytes[size], &value, sizeof(value));
  size += sizeof(value);
  bytes[size++] = kTimestampTag;
  for (; time >= 0x80; time >>= 7) bytes[size++] = static_cast<char>(time | 0x80);
  bytes[size++] = static_cast<char>(time);
  to->append(bytes.data(), size);
}

}  // namespace tacho::server::promread
