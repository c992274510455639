// Takes the parts of a ring from bytes that nobody vouches for. Internal to the reader.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/ring/ring_format.h"
#include "client/ring/ring_types.h"

namespace tacho::client {

struct ParsedHeader {
  RingInfo info;
  uint32_t flags = 0;
  uint32_t version = 0;
};

// `bytes` begins a file of `file_bytes`.
//   FAILED_PRECONDITION  another version of the format.
//   DATA_LOSS            no ring, or a damaged one.
absl::StatusOr<ParsedHeader> ParseRingHeader(absl::string_view bytes, uint64_t file_bytes);

struct RingDefinition {
  size_t size = 0;
  std::variant<RingMetric, RingAttribute, RingHistogram> content;
};

// The definition that `bytes` begins with, which lie at `position` of the definition area. Nothing
// if it is damaged or breaks a rule of the format.
std::optional<RingDefinition> ParseDefinition(absl::string_view bytes, uint64_t position,
                                              uint32_t version = kRingVersion);

// One record whose checksum, kind, size and count are right.
struct RingRecord {
  RecordHeader header;
  absl::string_view payload;  // Into the bytes it was parsed from.

  bool IsRow() const { return header.kind == static_cast<uint16_t>(RecordKind::kRow); }
  bool IsPadding() const { return header.kind == static_cast<uint16_t>(RecordKind::kPadding); }
  bool IsHistogramState() const {
    return header.kind == static_cast<uint16_t>(RecordKind::kHistogramState);
  }
  bool HasStep() const { return (header.flags & kFlagStep) != 0; }
};

// The record that `bytes`, at `position` of the ring, begin with. Nothing if it is damaged.
std::optional<RingRecord> ParseRecord(absl::string_view bytes, uint64_t position,
                                      uint32_t version = kRingVersion);

// Nothing if its texts break a rule of the format.
std::optional<RingEvent> ParseEvent(const RingRecord& record);

// Of a record that is one.
RingHistogramState ParseHistogramState(const RingRecord& record);

}  // namespace tacho::client
