// Text on a terminal: how wide it is, and nothing in it that could steer the terminal.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::ctl {

// Names and messages come from whoever sent them: control characters (escape sequences, line
// breaks, C1) become '?'.
std::string Printable(absl::string_view text);

// Columns that UTF-8 text takes, counting each code point as one: exact for all we print ourselves,
// too small for wide East Asian names.
size_t DisplayWidth(absl::string_view text);

// Shortened to `width` columns, the last one "…" (or '~' without Unicode) if something was cut.
std::string Shorten(absl::string_view text, size_t width, bool unicode);

}  // namespace tacho::ctl
