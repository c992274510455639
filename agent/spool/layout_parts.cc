#include "agent/spool/layout_parts.h"

#include <functional>
#include <string>
#include <utility>

#include "proto/base/check.h"

namespace tacho::agent {
namespace {

// Bytes of one series in the layout beyond the series itself: a tag and a length.
constexpr uint64_t kPerSeries = 6;
// One series in so many ends its part, if that is half full.
constexpr size_t kEndsOneIn = 16;

// The standard library's hash is the same in every run, so a restart finds the parts that the disk
// has.
bool EndsPart(const v1::Layout::Series& series) {
  return std::hash<std::string>()(series.SerializeAsString()) % kEndsOneIn == 0;
}

v1::Layout WithoutSeries(const v1::Layout& layout) {
  v1::Layout head;
  *head.mutable_source() = layout.source();
  head.set_has_steps(layout.has_steps());
  head.set_copy(layout.copy());
  return head;
}

}  // namespace

std::vector<v1::Layout> CutLayout(const v1::Layout& layout, const LayoutLimits& limits) {
  const auto series = static_cast<uint64_t>(layout.series_size());
  if (Fits(layout.ByteSizeLong(), series, limits)) return {layout};
  const v1::Layout head = WithoutSeries(layout);
  const uint64_t head_bytes = head.ByteSizeLong();
  std::vector<v1::Layout> parts;
  uint64_t bytes = 0;
  bool ended = true;
  for (const v1::Layout::Series& one : layout.series()) {
    const uint64_t more = one.ByteSizeLong() + kPerSeries;
    if (!ended) {
      const auto width = static_cast<uint64_t>(parts.back().series_size());
      ended = !Fits(bytes + more, width + 1, limits);
    }
    if (ended) {
      parts.push_back(head);
      bytes = head_bytes;
    }
    bytes += more;
    *parts.back().add_series() = one;
    const auto width = static_cast<uint64_t>(parts.back().series_size());
    const bool half_full = bytes >= limits.max_bytes / 2 ||
                           (limits.max_series != 0 && width >= (limits.max_series + 1) / 2);
    ended = half_full && EndsPart(one);
  }
  TACHO_CHECK(!parts.empty());
  return parts;
}

}  // namespace tacho::agent
