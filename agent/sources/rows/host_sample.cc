#include "agent/sources/rows/host_sample.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tacho::agent {

void HostSample::Add(const HostMetric& metric, absl::string_view label, double value) {
  const bool there = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.metric == &metric && entry.label == label;
  });
  if (!there && entries_.size() < kMaxSeries)
    entries_.push_back({&metric, std::string(label), value});
}

double StaleMarker() {
  // A signalling NaN: copied, since arithmetic would make it an ordinary one.
  constexpr uint64_t kBits = 0x7ff0000000000002;
  double value;
  std::memcpy(&value, &kBits, sizeof(value));
  return value;
}

}  // namespace tacho::agent
