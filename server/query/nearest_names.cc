#include "server/query/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace tacho::server {

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // Distances of a's first i bytes to every prefix of b.
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

std::vector<std::string> NearestNames(absl::string_view name, const std::vector<std::string>& names,
                                      size_t count) {
  const std::string wanted = absl::AsciiStrToLower(name);
  const size_t reach = std::max<size_t>(2, wanted.size() / 3);
  std::vector<std::pair<size_t, const std::string*>> near;
  for (const std::string& known : names) {
    const std::string lower = absl::AsciiStrToLower(known);
    const bool contains =
        !wanted.empty() && (absl::StrContains(lower, wanted) || absl::StrContains(wanted, lower));
    const size_t difference =
        std::max(lower.size(), wanted.size()) - std::min(lower.size(), wanted.size());
    if (!contains && difference > reach) continue;  // Cannot be within reach: spares the work.
    const size_t distance = EditDistance(wanted, lower);
    if (contains || distance <= reach) near.emplace_back(distance, &known);
  }
  std::sort(near.begin(), near.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, *a.second) < std::tie(b.first, *b.second);
  });
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min(count, near.size()); ++i) nearest.push_back(*near[i].second);
  return nearest;
}

}  // namespace tacho::server
