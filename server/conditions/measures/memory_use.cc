#include "server/conditions/measures/memory_use.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::server::conditions {
namespace {

// Appends nothing if one of the two is not recorded.
void Add(MemoryUse use, const Tracks& tracks, Signal of_points, Signal of_total, int64_t since_ns,
         std::vector<MemoryUse>* uses) {
  const Track* track = FindTrack(tracks, of_points);
  const auto total = Newest(tracks, of_total);
  if (track == nullptr || !total.has_value() || !std::isfinite(*total) || *total <= 0) return;
  use.metric = track->metric;
  use.total = *total;
  const bool free = of_points == Signal::kHostMemoryAvailable;
  for (const Point& point : track->points) {
    if (point.time_ns < since_ns || !std::isfinite(point.value)) continue;
    use.points.push_back({point.time_ns, free ? *total - point.value : point.value});
  }
  if (!use.points.empty()) uses->push_back(std::move(use));
}

}  // namespace

std::string MemoryUse::Name() const {
  return chip.empty() ? absl::StrCat("host ", host) : absl::StrCat("chip ", chip, " of ", host);
}

std::vector<MemoryUse> MemoryUses(const JobWindow& window, int64_t since_ns) {
  std::vector<MemoryUse> uses;
  for (const HostWindow& host : window.hosts) {
    Add({.host = host.host}, host.tracks, Signal::kHostMemoryAvailable, Signal::kHostMemoryTotal,
        since_ns, &uses);
  }
  for (const ChipWindow& chip : window.chips) {
    Add({.host = chip.host, .chip = chip.chip}, chip.tracks, Signal::kHbmUsed, Signal::kHbmTotal,
        since_ns, &uses);
  }
  return uses;
}

}  // namespace tacho::server::conditions
