// Parses the parts of a ring from untrusted bytes. Internal to the reader.
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
//   DATA_LOSS            not a ring, or a damaged one.
absl::StatusOr<ParsedHeader> ParseRingHeader(absl::string_view bytes, uint64_t file_bytes);

struct RingDefinition {
  size_t size = 0;
  std::variant<RingMetric, RingAttribute, RingHistogram> content;
};

// The definition at the beginning of `bytes`, which lie at `position` of the definition area.
// nullopt if it is damaged or breaks a rule of the format.
std::optional<RingDefinition> ParseDefinition(absl::string_view bytes, uint64_t position,
                                              uint32_t version = kRingVersion);

// One record; its checksum, kind, size and count are valid.
struct RingRecord {
  RecordHeader header;
  absl::string_view payload;  // Points into the parsed bytes.

  bool IsRow() const { return header.kind == static_cast<uint16_t>(RecordKind::kRow); }
  bool IsPadding() const { return header.kind == static_cast<uint16_t>(RecordKind::kPadding); }
  bool IsHistogramState() const {
    return header.kind == static_cast<uint16_t>(RecordKind::kHistogramState);
  }
  bool HasStep() const { return (header.flags & kFlagStep) != 0; }
};

// The record at the beginning of `bytes`, which lie at `position` of the ring. nullopt if it is
// damaged.
std::optional<RingRecord> ParseRecord(absl::string_view bytes, uint64_t position,
                                      uint32_t version = kRingVersion);

// The record must be an event. nullopt if its texts break a rule of the format.
std::optional<RingEvent> ParseEvent(const RingRecord& record);

// The record must be a histogram's state.
RingHistogramState ParseHistogramState(const RingRecord& record);

}  // namespace tacho::client
