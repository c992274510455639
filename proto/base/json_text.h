// Text in the form that JSON needs.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tacho {

// In quotes, escaped; a byte that is no UTF-8 becomes U+FFFD.
std::string JsonString(absl::string_view text);

// The text with U+FFFD for each byte that is no UTF-8.
std::string ValidUtf8(absl::string_view text);

}  // namespace tacho
