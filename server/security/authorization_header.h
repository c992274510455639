// The token of an HTTP or gRPC "authorization" header.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tacho::server::security {

// "Bearer TOKEN", or "Basic BASE64(anything:TOKEN)" where `allow_basic`. Empty if it is neither: no
// header, another scheme, or damaged; whoever sent it is told that no token came.
std::string TokenOf(absl::string_view authorization, bool allow_basic);

}  // namespace tacho::server::security
