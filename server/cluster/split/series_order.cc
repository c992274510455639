#include "server/cluster/split/series_order.h"

#include <algorithm>
#include <tuple>

namespace tacho::server::cluster {

bool ComesBefore(const v1::SeriesInfo& a, const v1::SeriesInfo& b) {
  if (const int order = a.metric().name().compare(b.metric().name()); order != 0) return order < 0;
  if (a.has_task() != b.has_task()) return b.has_task();
  if (a.task() != b.task()) return a.task() < b.task();
  if (const int order = a.host().compare(b.host()); order != 0) return order < 0;
  return std::lexicographical_compare(
      a.labels().begin(), a.labels().end(), b.labels().begin(), b.labels().end(),
      [](const v1::Label& one, const v1::Label& other) {
        return std::tie(one.name(), one.value()) < std::tie(other.name(), other.value());
      });
}

}  // namespace tacho::server::cluster
