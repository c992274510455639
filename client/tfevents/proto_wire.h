// Walks the fields of one encoded protobuf message: untrusted bytes, nothing copied.
//
// Event files are read with this and not with generated classes because a scalar is a few bytes
// among images, graphs and histograms, which generated code would copy, and because restating
// other people's messages under their package name clashes with a TensorFlow in the same process.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tacho::client {

class ProtoFields {
 public:
  enum class Type { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  struct Field {
    uint32_t number = 0;
    Type type = Type::kVarint;
    uint64_t value = 0;       // Of a varint or fixed field.
    absl::string_view bytes;  // Of a length-delimited field; lies in the message's bytes.

    bool Is(uint32_t wanted_number, Type wanted_type) const {
      return number == wanted_number && type == wanted_type;
    }
  };

  explicit ProtoFields(absl::string_view message) : rest_(message) {}

  // Moves to the next field. False at the end, and for ever at the first malformed byte. Groups,
  // which no message of today has, count as malformed.
  bool Next(Field* field);
  bool malformed() const { return malformed_; }

 private:
  bool ReadValue(Field* field);

  absl::string_view rest_;
  bool malformed_ = false;
};

// Takes a varint off the front of *bytes. False if it does not end or is longer than 64 bits.
bool ConsumeVarint(absl::string_view* bytes, uint64_t* value);

// Takes a little-endian number of `size` bytes (at most 8) off the front. False if there are fewer.
bool ConsumeFixed(absl::string_view* bytes, size_t size, uint64_t* value);

}  // namespace tacho::client
