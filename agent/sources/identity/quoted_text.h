// Text in double quotes.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::agent {

// Takes "text" off the beginning of `*rest`, with \\ \" \n \t as escapes. None, and `*rest` is
// anywhere: it does not begin with a quote, has another escape, or does not end.
std::optional<std::string> ConsumeQuoted(absl::string_view* rest);

}  // namespace tacho::agent
