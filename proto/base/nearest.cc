#include "proto/base/nearest.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tacho {
namespace {

// Names longer than this are compared by their beginning: the cost is quadratic.
constexpr size_t kCompareBytes = 256;

size_t ReplaceCost(char a, char b) {
  if (a == b) return 0;
  return absl::ascii_tolower(static_cast<unsigned char>(a)) ==
                 absl::ascii_tolower(static_cast<unsigned char>(b))
             ? 1
             : 2;
}

// Lower is nearer; nullopt is too far to be meant.
std::optional<size_t> Distance(absl::string_view typed, absl::string_view name) {
  const size_t longer = std::max(typed.size(), name.size());
  const size_t allowed = 2 * std::max<size_t>(1, longer / 3);
  // Each byte that one has more than the other is an edit: most names need no closer look.
  if (2 * (longer - std::min(typed.size(), name.size())) <= allowed) {
    if (const size_t edits = HalfEdits(typed, name); edits <= allowed) return edits;
  }
  const std::string lower_typed = absl::AsciiStrToLower(typed);
  const std::string lower_name = absl::AsciiStrToLower(name);
  if (typed.size() >= 2 && absl::StartsWith(lower_name, lower_typed)) return allowed + 1;
  if (typed.size() >= 3 && absl::StrContains(lower_name, lower_typed)) return allowed + 2;
  return std::nullopt;
}

}  // namespace

size_t HalfEdits(absl::string_view a, absl::string_view b) {
  a = a.substr(0, kCompareBytes);
  b = b.substr(0, kCompareBytes);
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = 2 * j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = 2 * i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 2, row[j - 1] + 2, last[j - 1] + ReplaceCost(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 2);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::vector<std::string> NearestNames(absl::string_view typed,
                                      const std::vector<std::string>& known, size_t limit) {
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& name : known) {
    if (const auto distance = Distance(typed, name)) near.emplace_back(*distance, name);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> names;
  for (auto& [distance, name] : near) {
    if (names.size() == limit) break;
    names.push_back(std::move(name));
  }
  return names;
}

std::string DidYouMean(absl::string_view typed, const std::vector<std::string>& known) {
  const std::vector<std::string> near = NearestNames(typed, known);
  if (near.empty()) return "";
  std::string text = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i) {
    if (i > 0) text += i + 1 == near.size() ? " or " : ", ";
    absl::StrAppend(&text, "'", near[i], "'");
  }
  return text + "?";
}

}  // namespace tacho
