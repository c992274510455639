// Walks over the fields of a protobuf message without copying or allocating anything. The generated
// classes make some twenty strings for each series of a request, which costs more than storing its
// sample.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/string_view.h"

namespace tacho::server::interop {

// One thread. `message` must outlive it and what it returns.
//
//   for (WireReader in(message); in.Next();) switch (in.field()) …
//   if (in.broken()) …
class WireReader {
 public:
  explicit WireReader(absl::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  // The next message of a stream in which each comes after its length, and takes both away. Nothing
  // if the bytes are no such stream.
  static std::optional<absl::string_view> TakeDelimited(absl::string_view* stream) {
    WireReader in(*stream);
    uint64_t size = 0;
    if (!in.ReadVarint(&size) || size > static_cast<uint64_t>(in.end_ - in.at_)) {
      return std::nullopt;
    }
    const absl::string_view message(in.at_, static_cast<size_t>(size));
    stream->remove_prefix(static_cast<size_t>(in.at_ - stream->data()) + message.size());
    return message;
  }

  // Moves to the next field. False at the end, and where the bytes are no message.
  bool Next() {
    if (at_ == end_) return false;
    begin_ = at_;
    uint64_t tag = 0;
    if (!ReadVarint(&tag) || tag >> 32 != 0 || tag >> 3 == 0) return Break();
    field_ = static_cast<uint32_t>(tag >> 3);
    wire_type_ = static_cast<uint32_t>(tag & 7);
    switch (wire_type_) {
      case kVarint:
        return ReadVarint(&number_) || Break();
      case kFixed64:
        return ReadFixed(8) || Break();
      case kFixed32:
        return ReadFixed(4) || Break();
      case kBytes: {
        uint64_t size = 0;
        if (!ReadVarint(&size) || size > static_cast<uint64_t>(end_ - at_)) return Break();
        bytes_ = {at_, static_cast<size_t>(size)};
        at_ += size;
        return true;
      }
      default:
        return Break();  // Groups, which proto3 does not have, and what is no type.
    }
  }
  bool broken() const { return broken_; }

  // The field at hand.
  uint32_t field() const { return field_; }
  bool is_bytes() const { return wire_type_ == kBytes; }
  bool is_varint() const { return wire_type_ == kVarint; }
  bool is_fixed64() const { return wire_type_ == kFixed64; }
  // The whole of it, with its tag.
  absl::string_view whole() const { return {begin_, static_cast<size_t>(at_ - begin_)}; }
  // Its value: bytes() of a string, message or packed list, number() of the other types.
  absl::string_view bytes() const { return bytes_; }
  uint64_t number() const { return number_; }
  int64_t integer() const { return static_cast<int64_t>(number_); }
  int64_t zig_zag() const {
    return static_cast<int64_t>(number_ >> 1) ^ -static_cast<int64_t>(number_ & 1);
  }
  double real() const { return std::bit_cast<double>(number_); }

  // Calls take(varint) for the field's numbers: a packed list, or one of a list that is not packed.
  // False if the bytes are damaged.
  template <typename Take>
  bool ForEachVarint(Take take) const {
    if (is_varint()) {
      take(number_);
      return true;
    }
    WireReader list(bytes_);
    while (list.at_ != list.end_) {
      uint64_t value = 0;
      if (!is_bytes() || !list.ReadVarint(&value)) return false;
      take(value);
    }
    return is_bytes();
  }
  // The same for numbers of eight bytes.
  template <typename Take>
  bool ForEachFixed64(Take take) const {
    if (is_fixed64()) {
      take(number_);
      return true;
    }
    if (!is_bytes() || bytes_.size() % 8 != 0) return false;
    WireReader list(bytes_);
    while (list.ReadFixed(8)) take(list.number_);
    return true;
  }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  bool Break() {
    broken_ = true;
    at_ = end_;
    return false;
  }
  bool ReadVarint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool ReadFixed(size_t size) {
    if (static_cast<size_t>(end_ - at_) < size) return false;
    static_assert(std::endian::native == std::endian::little);
    number_ = 0;
    std::memcpy(&number_, at_, size);
    at_ += size;
    return true;
  }

  const char* at_;
  const char* const end_;
  const char* begin_ = nullptr;
  uint32_t field_ = 0;
  uint32_t wire_type_ = kVarint;
  uint64_t number_ = 0;
  absl::string_view bytes_;
  bool broken_ = false;
};

}  // namespace tacho::server::interop
