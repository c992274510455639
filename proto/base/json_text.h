// Text in the form that JSON needs.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tacho {

// In quotes, escaped; a byte that is no UTF-8 becomes U+FFFD.
std::string JsonString(absl::string_view text);

// The text with U+FFFD for each byte that is no UTF-8.
std::string ValidUtf8(absl::string_view text);

// Whether more than `levels` objects and arrays are in each other, in a text that may be no JSON at
// all. protobuf's parser takes arrays in arrays without end, and keeps some hundred bytes for each;
// it takes either kind of quotes.
bool IsJsonNested(absl::string_view json, int levels);

}  // namespace tacho
