// The framing of event files (TFRecord), read from untrusted bytes.
//
//    0            8            12                12 + n    16 + n
//    | length n   | masked CRC | payload         | masked CRC
//    | u64 LE     | of length  | n bytes         | of payload
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tacho::client {

// The masked form is stored, so that a checksum over bytes that hold checksums stays sound.
constexpr uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
uint32_t MaskedCrc32c(absl::string_view bytes);

inline constexpr uint64_t kRecordHeaderBytes = 12;
inline constexpr uint64_t kRecordOverheadBytes = 16;

struct RecordView {
  enum class Kind {
    kRecord,    // `payload` is whole and its checksum right.
    kNeedMore,  // The bytes end inside the record: come back with at least `bytes` of them.
    kTooLarge,  // The length is right and above the limit: skip `bytes`, unread and unchecked.
    kCorrupt,   // `defect` says what is wrong. Nothing after this can be trusted.
  };
  Kind kind = Kind::kNeedMore;
  uint64_t bytes = 0;         // From the record's first byte to the first after it.
  absl::string_view payload;  // Lies in the bytes that were given.
  uint32_t crc = 0;           // As stored: masked, of the payload.
  const char* defect = "";
};

// Looks at the record that begins at the first of `bytes`, which may go on past it or end before.
RecordView ReadRecord(absl::string_view bytes, uint64_t max_payload_bytes);

}  // namespace tacho::client
