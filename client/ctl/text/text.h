// Text for terminals and files: its width, its lines, CSV; and nothing in it that could steer the
// terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::ctl {

// Names and messages are untrusted: control characters (escape sequences, line breaks, C1) become
// '?'.
std::string Printable(absl::string_view text);

// The columns that UTF-8 text takes, with one for each code point: exact for all text of ours, too
// small for wide East Asian names.
size_t DisplayWidth(absl::string_view text);

// Shortened to `width` columns, the last one "…" (or '~' without Unicode) if something was cut.
std::string Shorten(absl::string_view text, size_t width, bool unicode);

// Splits text into lines of whole words. A word that is too long runs over the edge; `width` 0
// means no limit.
std::vector<std::string> Wrap(absl::string_view text, size_t width);

// One field of CSV (RFC 4180): unchanged, or quoted with its quotes doubled if it holds a comma, a
// quote or a line break.
std::string CsvField(absl::string_view text);

// One line of CSV with its CRLF.
std::string CsvLine(const std::vector<std::string>& fields);

}  // namespace tacho::ctl
