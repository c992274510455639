// CSV as RFC 4180: CRLF at the end of each line, quotes where a field needs them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::ctl {

// As it is, or quoted with its quotes doubled if it holds a comma, a quote or a line break.
std::string CsvField(absl::string_view text);

// One line with its CRLF.
std::string CsvLine(const std::vector<std::string>& fields);

}  // namespace tacho::ctl
