#include "server/conditions/measures/change_point.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tacho::server::conditions {
namespace {

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] <= values[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    for (; begin < end; ++begin) ranks[order[begin]] = rank;
  }
  return ranks;
}

}  // namespace

ChangePoint FindRise(const std::vector<double>& values, size_t margin) {
  ChangePoint found;
  if (values.size() < 2 * margin || values.size() < 2) return found;
  const std::vector<double> ranks = Ranks(values);
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  double highest = 0;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    sum += ranks[i];
    const double u = 2 * sum - static_cast<double>(i + 1) * (n + 1);
    const auto before = static_cast<double>(i + 1);
    const double z = -u / std::sqrt(before * (n - before) * (n + 1) / 3);
    if (i + 1 < margin || values.size() - i - 1 < margin || z <= highest) continue;
    highest = z;
    found.index = i + 1;
  }
  found.p = std::min(1.0, n * std::erfc(highest / std::sqrt(2.0)) / 2);
  return found;
}

}  // namespace tacho::server::conditions
