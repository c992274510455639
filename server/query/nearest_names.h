// "Did you mean": the known names that are closest to a mistyped one.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::server {

// Insertions, deletions and replacements of bytes that turn one into the other.
size_t EditDistance(absl::string_view a, absl::string_view b);

// At most `count` of `names`, closest first: those within a third of the name's length in edits
// (at least 2), and those that contain it or are contained in it. Case is ignored.
std::vector<std::string> NearestNames(absl::string_view name, const std::vector<std::string>& names,
                                      size_t count);

}  // namespace tacho::server
