// The format (google/snappy, format_description.txt): the length of the unpacked bytes as a varint,
// then elements. What RawCompress() makes of a block refers to that block only, so that elements of
// several calls may stand behind each other.
#include "server/promread/snappy_message.h"

#include <snappy.h>

#include <algorithm>
#include <utility>

#include "storage/codec/bytes.h"

namespace tacho::server::promread {
namespace {

// RawCompress() takes 64 KiB at a time, and memory for that in each call.
constexpr size_t kBlockBytes = size_t{1} << 20;
// The length of the message, an element's head, a tag, and the length of a field.
constexpr size_t kRoom = 5 + 1 + 1 + 10;

// A literal of at most 60 bytes.
std::string Literal(absl::string_view bytes) {
  std::string element(1, static_cast<char>((bytes.size() - 1) << 2));
  element.append(bytes.data(), bytes.size());
  return element;
}

// Puts `bytes` in front of what is there, where room was left.
void PutBefore(absl::string_view bytes, size_t* begin, std::string* packed) {
  *begin -= bytes.size();
  packed->replace(*begin, bytes.size(), bytes.data(), bytes.size());
}

}  // namespace

void SnappyMessage::BeginField() {
  fields_.push_back({std::string(kRoom, '\0'), kRoom});
  value_bytes_ = 0;
}

void SnappyMessage::Append(absl::string_view bytes) {
  value_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const absl::string_view part = bytes.substr(0, kBlockBytes - block_.size());
    block_.append(part.data(), part.size());
    bytes.remove_prefix(part.size());
    if (block_.size() == kBlockBytes) Pack();
  }
}

void SnappyMessage::Pack() {
  if (block_.empty()) return;
  packed_block_.resize(std::max(packed_block_.size(), snappy::MaxCompressedLength(block_.size())));
  size_t size = 0;
  snappy::RawCompress(block_.data(), block_.size(), packed_block_.data(), &size);
  std::string length;
  storage::PutVarint(block_.size(), &length);
  fields_.back().packed.append(packed_block_, length.size(), size - length.size());
  block_.clear();
}

void SnappyMessage::EndField(char tag) {
  Pack();
  std::string head(1, tag);
  storage::PutVarint(value_bytes_, &head);
  message_bytes_ += head.size() + value_bytes_;
  PutBefore(Literal(head), &fields_.back().begin, &fields_.back().packed);
}

std::string SnappyMessage::Take() && {
  std::string length;
  storage::PutVarint(message_bytes_, &length);
  if (fields_.empty()) return length;
  Field& first = fields_.front();
  PutBefore(length, &first.begin, &first.packed);
  std::string packed = std::move(first.packed);
  // Moving the bytes costs less than memory for a copy.
  packed.erase(0, first.begin);
  for (size_t i = 1; i < fields_.size(); ++i) {
    packed.append(fields_[i].packed, fields_[i].begin, std::string::npos);
  }
  return packed;
}

}  // namespace tacho::server::promread
