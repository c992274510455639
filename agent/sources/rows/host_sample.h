// What one look at a machine has found: an ordered list of series and their values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/stale_marker.h"
#include "tacho/v1/types.pb.h"

namespace tacho::agent {

// A metric's definition; all of them are constants beside the parser that fills them.
struct HostMetric {
  const char* name;
  v1::MetricType type;
  const char* unit;
  const char* help;
  const char* label = nullptr;  // Name of the one label that its series have, if they have one.
};

class HostSample {
 public:
  struct Entry {
    const HostMetric* metric = nullptr;
    std::string label;  // Its value; empty if the metric has none.
    double value = 0;
  };

  // More than 150 devices have; beyond, series are left out, so that a machine with a device for
  // each of its containers does not make a layout that collectors refuse.
  static constexpr size_t kMaxSeries = 2048;

  // Adding the same series again is a mistake of the machine's (a device listed twice): the first
  // value stays.
  void Add(const HostMetric& metric, double value) { Add(metric, "", value); }
  void Add(const HostMetric& metric, absl::string_view label, double value);

  const std::vector<Entry>& entries() const { return entries_; }
  void clear() { entries_.clear(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace tacho::agent
