// Adds up what cumulative metrics of several processes have grown by, over their restarts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/sample.h"
#include "agent/sources/tpu/tpu_points.h"

namespace tacho::agent {

// A process restarts and counts from 0; another one takes over its port; one answers for all. So
// the growth of each is added up, and the sum never falls:
//   - a start time that changed, other buckets, or a count that fell are a restart: all is growth;
//   - what is seen for the first time is no growth, unless it began after this object was made;
//   - if two ports report one start time, it is one process, or the whole worker, and counts once
//     in a round.
// Buckets of different bounds stay apart: an observation counts below the bound of its own. One
// thread.
class TpuTotals {
 public:
  // Beyond, new ones are left out and counted.
  static constexpr size_t kMaxTracked = 8192;
  // One series keeps this many. If its buckets are finer, only each n-th bound is kept; the counts
  // below those are exact.
  static constexpr size_t kMaxBounds = 32;

  struct Total {
    double count = 0;
    double sum = 0;
    std::map<double, double> below;  // Observations that count below each bound, not cumulated.
  };
  using Key = std::pair<std::string, Labels>;  // Metric, labels.

  explicit TpuTotals(absl::Time born);

  // Before each look at all ports.
  void BeginRound() { told_.clear(); }
  void AddCounter(absl::string_view port, const Key& key, int64_t start_ns, double value);
  void AddDistribution(absl::string_view port, const Key& key, int64_t start_ns,
                       const TpuDistribution& distribution);

  const std::map<Key, Total>& totals() const { return totals_; }
  size_t left_out() const { return left_out_; }

 private:
  struct Seen {
    int64_t start_ns = 0;
    TpuDistribution last;
  };

  // The growth of `now` since it was seen last; all 0 if it is not to be counted, and none if
  // there is no room to remember it.
  std::optional<TpuDistribution> Growth(absl::string_view port, const Key& key, int64_t start_ns,
                                        const TpuDistribution& now);

  const int64_t born_ns_;
  std::map<std::pair<std::string, Key>, Seen> seen_;  // By port and series.
  std::set<std::pair<Key, int64_t>> told_;            // In this round, with their start.
  std::map<Key, Total> totals_;
  size_t left_out_ = 0;
};

}  // namespace tacho::agent
