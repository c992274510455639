#include "agent/spool/spooled_message.h"

#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "proto/base/check.h"

namespace tacho::agent {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t TagOf(int field, WireFormatLite::WireType type) {
  return static_cast<uint32_t>(field) << 3 | static_cast<uint32_t>(type);
}
constexpr uint32_t kBatchTag =
    TagOf(v1::ClientMessage::kBatchFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
constexpr uint32_t kSequenceTag =
    TagOf(v1::Batch::kSequenceFieldNumber, WireFormatLite::WIRETYPE_VARINT);
constexpr uint32_t kLayoutTag =
    TagOf(v1::Batch::kLayoutFieldNumber, WireFormatLite::WIRETYPE_VARINT);
constexpr uint32_t kTimesTag =
    TagOf(v1::Batch::kTimesUnixNsFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
constexpr uint32_t kStepsTag =
    TagOf(v1::Batch::kStepsFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
constexpr uint32_t kValuesTag =
    TagOf(v1::Batch::kValuesFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
constexpr int kColumnEntryBytes = 8;

// Skips a packed column; false if it is damaged. *entries is how many it has.
bool SkipColumn(CodedInputStream* in, uint64_t* entries) {
  int size = 0;
  if (!in->ReadVarintSizeAsInt(&size) || size % kColumnEntryBytes != 0) return false;
  *entries = static_cast<uint64_t>(size) / kColumnEntryBytes;
  return in->Skip(size);
}

void AppendVarint(uint32_t value, std::string* out) {
  uint8_t bytes[5];
  const size_t size = CodedOutputStream::WriteVarint32ToArray(value, bytes) - bytes;
  out->append(reinterpret_cast<const char*>(bytes), size);
}

}  // namespace

bool SpooledMessage::ScanBatch() {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes_.data()),
                      static_cast<int>(bytes_.size()));
  int size = 0;
  if (in.ReadTag() != kBatchTag || !in.ReadVarintSizeAsInt(&size)) return false;
  fields_begin_ = static_cast<size_t>(in.CurrentPosition());
  if (fields_begin_ + static_cast<size_t>(size) != bytes_.size()) return false;
  uint64_t sequence = 0;
  if (in.ReadTag() != kSequenceTag || !in.ReadVarint64(&sequence)) return false;
  layout_begin_ = static_cast<size_t>(in.CurrentPosition());
  if (in.ReadTag() != kLayoutTag || !in.ReadVarint32(&layout_)) return false;
  layout_end_ = static_cast<size_t>(in.CurrentPosition());

  bool has_unknown = false;
  uint32_t last_tag = kLayoutTag;
  for (uint32_t tag = in.ReadTag(); tag != 0; tag = in.ReadTag()) {
    if (tag > kValuesTag) {  // A later version's field.
      has_unknown = true;
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    if (tag <= last_tag || (tag != kTimesTag && tag != kStepsTag && tag != kValuesTag)) {
      return false;
    }
    uint64_t entries = 0;
    if (!SkipColumn(&in, &entries)) return false;
    if (tag == kTimesTag) rows_ = entries;
    last_tag = tag;
  }
  // Skipping forgives what parsing does not, such as a tag of too many bytes.
  return in.ConsumedEntireMessage() &&
         (!has_unknown || v1::ClientMessage().ParseFromString(bytes_));
}

std::optional<SpooledMessage> SpooledMessage::Of(std::string bytes) {
  SpooledMessage message(std::move(bytes));
  if (message.ScanBatch()) {
    message.kind_ = v1::ClientMessage::kBatch;
    return message;
  }
  v1::ClientMessage parsed;
  if (!parsed.ParseFromString(message.bytes_)) return std::nullopt;
  message = SpooledMessage(std::move(message.bytes_));
  message.kind_ = parsed.message_case();
  if (!message.is_batch()) return message;

  // Right, but not as we serialize it.
  message = SpooledMessage(parsed.SerializeAsString());
  if (!message.ScanBatch()) return std::nullopt;
  message.kind_ = v1::ClientMessage::kBatch;
  return message;
}

v1::ClientMessage SpooledMessage::Parsed() const {
  v1::ClientMessage message;
  TACHO_CHECK(message.ParseFromString(bytes_));
  return message;
}

SpooledMessage::Parts SpooledMessage::WithLayout(uint32_t layout) const {
  TACHO_CHECK(is_batch());
  TACHO_CHECK(fields_begin_ < layout_begin_ && layout_begin_ < layout_end_);
  TACHO_CHECK(layout_end_ <= bytes_.size());
  const absl::string_view all = bytes_;
  Parts parts;
  parts.tail = all.substr(layout_end_);
  std::string fields(all.substr(fields_begin_, layout_begin_ - fields_begin_));
  AppendVarint(kLayoutTag, &fields);
  AppendVarint(layout, &fields);
  AppendVarint(kBatchTag, &parts.head);
  AppendVarint(static_cast<uint32_t>(fields.size() + parts.tail.size()), &parts.head);
  parts.head += fields;
  return parts;
}

}  // namespace tacho::agent
