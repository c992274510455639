// libtpu's gauges of detected errors, as events: once for each change.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agent/sources/chips/chip_events.h"
#include "agent/sources/tpu/tpu_points.h"

namespace tacho::agent {

// A gauge stays at 1 for as long as the error lasts, on every port of a worker: that is one event
// when it rises and one, `..._cleared`, when it falls or is gone. One thread.
class TpuErrors {
 public:
  // At once; a runtime that makes up a label for each error must not fill the memory.
  static constexpr size_t kMaxErrors = 64;

  // What one look at all ports gave, by libtpu's names of the gauges; one that nobody told stays as
  // it was, unless `nobody_up`. Whether an error is new.
  bool Tell(absl::Time now, const std::map<std::string, std::vector<TpuPoint>>& gauges,
            bool nobody_up, ChipEvents* events);
  // Those of one gauge that last.
  size_t Count(const std::string& gauge) const;

 private:
  using Error = std::pair<std::string, std::map<std::string, std::string>>;  // Gauge, labels.

  std::set<Error> lasting_;
};

}  // namespace tacho::agent
