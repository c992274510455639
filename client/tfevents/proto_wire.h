// Walks the fields of one encoded protobuf message: untrusted bytes, nothing copied.
//
// Generated classes would copy the images, graphs and histograms around a scalar of a few bytes,
// and restating TensorFlow's messages under their package name clashes with a TensorFlow in the
// same process.
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
    uint64_t value = 0;       // For a varint or fixed field.
    absl::string_view bytes;  // For a length-delimited field; points into the message.

    bool Is(uint32_t wanted_number, Type wanted_type) const {
      return number == wanted_number && type == wanted_type;
    }
  };

  explicit ProtoFields(absl::string_view message) : rest_(message) {}

  // Moves to the next field. False at the end, and from the first malformed byte on. Groups, which
  // no current message uses, count as malformed.
  bool Next(Field* field);
  bool malformed() const { return malformed_; }

 private:
  bool ReadValue(Field* field);

  absl::string_view rest_;
  bool malformed_ = false;
};

// Removes a varint from the front of *bytes. False if it does not end or is longer than 64 bits.
bool ConsumeVarint(absl::string_view* bytes, uint64_t* value);

// Removes a little-endian number of `size` bytes (at most 8) from the front. False if there are
// fewer bytes.
bool ConsumeFixed(absl::string_view* bytes, size_t size, uint64_t* value);

}  // namespace tacho::client
