// Text in lines of a width.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::ctl {

// Lines of whole words; a word that is too long runs over the edge. `width` 0 is no limit.
std::vector<std::string> Wrap(absl::string_view text, size_t width);

}  // namespace tacho::ctl
