// Parts of protobuf messages that are written by hand.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "storage/codec/bytes.h"

namespace tacho::server::forward {

// A field of a message or text. `tag`: field number × 8 + 2, below 128.
inline void AppendMessage(char tag, absl::string_view message, std::string* out) {
  out->push_back(tag);
  storage::PutString(message, out);
}

}  // namespace tacho::server::forward
