#include "client/tfevents/proto_wire.h"

#include <cstddef>

namespace tacho::client {

bool ConsumeVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const uint64_t byte = static_cast<unsigned char>((*bytes)[i]);
    if (i == 9 && byte > 1) return false;  // The tenth byte holds the last of 64 bits.
    *value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool ConsumeFixed(absl::string_view* bytes, size_t size, uint64_t* value) {
  if (bytes->size() < size) return false;
  *value = 0;
  for (size_t i = size; i-- > 0;) {
    *value = *value << 8 | static_cast<unsigned char>((*bytes)[i]);
  }
  bytes->remove_prefix(size);
  return true;
}

bool ProtoFields::Next(Field* field) {
  if (malformed_ || rest_.empty()) return false;
  uint64_t key = 0;
  if (!ConsumeVarint(&rest_, &key) || key >> 3 == 0 || key >> 3 >= uint64_t{1} << 29) {
    malformed_ = true;
    return false;
  }
  field->number = static_cast<uint32_t>(key >> 3);
  field->type = static_cast<Type>(key & 7);
  field->value = 0;
  field->bytes = absl::string_view();
  malformed_ = !ReadValue(field);
  return !malformed_;
}

bool ProtoFields::ReadValue(Field* field) {
  switch (field->type) {
    case Type::kVarint:
      return ConsumeVarint(&rest_, &field->value);
    case Type::kFixed64:
      return ConsumeFixed(&rest_, 8, &field->value);
    case Type::kFixed32:
      return ConsumeFixed(&rest_, 4, &field->value);
    case Type::kBytes: {
      uint64_t size = 0;
      if (!ConsumeVarint(&rest_, &size) || size > rest_.size()) return false;
      field->bytes = rest_.substr(0, size);
      rest_.remove_prefix(size);
      return true;
    }
  }
  return false;
}

}  // namespace tacho::client
