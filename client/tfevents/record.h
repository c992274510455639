// The framing of event files (TFRecord), read from untrusted bytes.
//
//    0            8            12                12 + n    16 + n
//    | length n   | masked CRC | payload         | masked CRC
//    | u64 LE     | of length  | n bytes         | of payload
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tacho::client {

// Files store the masked form, so that a checksum over bytes that contain checksums stays sound.
constexpr uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
uint32_t MaskedCrc32c(absl::string_view bytes);

inline constexpr uint64_t kRecordHeaderBytes = 12;
inline constexpr uint64_t kRecordOverheadBytes = 16;

struct RecordView {
  enum class Kind {
    kRecord,    // `payload` is complete and its checksum matches.
    kNeedMore,  // The bytes end inside the record: come back with at least `bytes` of them.
    kTooLarge,  // The length is valid but above the limit: skip `bytes` without reading them.
    kCorrupt,   // `defect` says what is wrong. Nothing after this can be trusted.
  };
  Kind kind = Kind::kNeedMore;
  uint64_t bytes = 0;         // The length of the whole record.
  absl::string_view payload;  // Points into the parsed bytes.
  uint32_t crc = 0;           // The payload's, as stored: masked.
  const char* defect = "";
};

// Reads the record at the beginning of `bytes`, which may continue after it or end inside it.
RecordView ReadRecord(absl::string_view bytes, uint64_t max_payload_bytes);

}  // namespace tacho::client
