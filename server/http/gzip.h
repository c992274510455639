// gzip, for bodies of HTTP.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::server::http {

// At zlib's fastest level: text metrics shrink tenfold at any level, and a scrape is waiting. Large
// bodies on several cores, as pieces of one stream.
// nullopt if zlib has no memory or the input is 4 GiB or more: send the plain bytes then.
std::optional<std::string> Gzip(absl::string_view bytes);

}  // namespace tacho::server::http
