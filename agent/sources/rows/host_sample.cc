#include "agent/sources/rows/host_sample.h"

#include <algorithm>

namespace tacho::agent {

void HostSample::Add(const HostMetric& metric, absl::string_view label, double value) {
  const bool there = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.metric == &metric && entry.label == label;
  });
  if (!there && entries_.size() < kMaxSeries)
    entries_.push_back({&metric, std::string(label), value});
}

}  // namespace tacho::agent
