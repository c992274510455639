// Manual pages in the language of man(7).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::ctl {

// Text as it stands: backslashes and hyphens escaped, no line that is taken for a request.
std::string Troff(absl::string_view text);

// Lines as they stand, with their spaces.
std::string TroffLines(absl::string_view lines);

// The first request of a page.
std::string TroffTitle(absl::string_view name, int section);

// A page from the text that a program prints for --help: its first paragraph says what it is;
// "Usage:", "Signals:", "Exit status:" and "Example:" begin paragraphs of their own; options are
// indented. Texts after the first are about a command of the program, and get sections
// of their own.
std::string HelpPage(absl::string_view name, int section, const std::vector<std::string>& helps);

}  // namespace tacho::ctl
