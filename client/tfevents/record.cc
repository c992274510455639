#include "client/tfevents/record.h"

#include <cstddef>

#include "proto/base/crc32c.h"

namespace tacho::client {
namespace {

// No file is longer (off_t is signed), so a longer record can never be completed.
constexpr uint64_t kLongestFile = INT64_MAX;

uint64_t LoadLittleEndian(absl::string_view bytes, size_t offset, int count) {
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[offset + static_cast<size_t>(i)]);
  }
  return value;
}

RecordView Corrupt(const char* defect) {
  RecordView view;
  view.kind = RecordView::Kind::kCorrupt;
  view.defect = defect;
  return view;
}

}  // namespace

uint32_t MaskedCrc32c(absl::string_view bytes) {
  return MaskCrc32c(ExtendCrc32c(0, bytes.data(), bytes.size()));
}

RecordView ReadRecord(absl::string_view bytes, uint64_t max_payload_bytes) {
  RecordView view;
  view.bytes = kRecordHeaderBytes;
  if (bytes.size() < kRecordHeaderBytes) return view;
  const uint64_t length = LoadLittleEndian(bytes, 0, 8);
  if (LoadLittleEndian(bytes, 8, 4) != MaskedCrc32c(bytes.substr(0, 8))) {
    return Corrupt("the checksum of a record's length does not match");
  }
  if (length > kLongestFile - kRecordOverheadBytes) {
    return Corrupt("a record's length is beyond any file");
  }
  view.bytes = length + kRecordOverheadBytes;
  if (length > max_payload_bytes) {
    view.kind = RecordView::Kind::kTooLarge;
    return view;
  }
  if (bytes.size() < view.bytes) return view;
  view.payload = bytes.substr(kRecordHeaderBytes, length);
  view.crc = static_cast<uint32_t>(LoadLittleEndian(bytes, kRecordHeaderBytes + length, 4));
  if (view.crc != MaskedCrc32c(view.payload)) {
    return Corrupt("the checksum of a record does not match");
  }
  view.kind = RecordView::Kind::kRecord;
  return view;
}

}  // namespace tacho::client
