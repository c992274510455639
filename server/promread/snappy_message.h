// A protobuf message of long fields in Snappy's block format, packed as it is written: it is never
// in memory as a whole before it is packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::server::promread {

// One thread.
//
//   SnappyMessage message;
//   for (…) {
//     message.BeginField();
//     message.Append(…);
//     message.EndField(tag);
//   }
//   std::string packed = std::move(message).Take();
class SnappyMessage {
 public:
  void BeginField();
  // A part of the field's value.
  void Append(absl::string_view bytes);
  // `tag`: field number × 8 + 2, below 128.
  void EndField(char tag);
  // All fields, below 4 GiB unpacked.
  std::string Take() &&;

 private:
  void Pack();

  // Values of fields, packed. The bytes before `begin` are room for what is known at the end.
  struct Field {
    std::string packed;
    size_t begin = 0;
  };
  std::vector<Field> fields_;
  std::string block_;         // Of the last field, not packed yet.
  std::string packed_block_;  // Kept for its memory.
  uint64_t value_bytes_ = 0;  // Of the last field.
  uint64_t message_bytes_ = 0;
};

}  // namespace tacho::server::promread
