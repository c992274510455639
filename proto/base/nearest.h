// "Did you mean …": the known names closest to what somebody typed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho {

// Edits (insert, delete, replace, swap of neighbours; case counts half) that turn `a` into `b`, in
// half edits so that the result stays an integer.
size_t HalfEdits(absl::string_view a, absl::string_view b);

// At most `limit` of `known`, nearest first: those within a third of the typed length, and those
// that the typed text begins or is contained in.
std::vector<std::string> NearestNames(absl::string_view typed,
                                      const std::vector<std::string>& known, size_t limit = 3);

// "; did you mean 'a' or 'b'?", or "" if nothing is near.
std::string DidYouMean(absl::string_view typed, const std::vector<std::string>& known);

}  // namespace tacho
