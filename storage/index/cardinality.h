// How many series there are, of what, and how many more may come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/index/series_limits.h"

namespace tacho::storage {

struct CardinalityReport {
  // What the index holds as a whole against what it may.
  struct Total {
    Limit limit = Limit::kSeries;
    uint64_t used = 0;
    uint64_t bound = 0;
  };
  struct Job {
    std::string name;
    uint64_t series = 0;  // Overflow series included.
    // For series that are no overflow series, where no rule for a metric says otherwise.
    uint64_t bound = 0;
    bool in_memory = false;
  };
  struct MetricUse {
    std::string job;
    std::string metric;
    uint64_t series = 0;           // Overflow series left out.
    uint64_t overflow_series = 0;  // Into which others are folded.
    uint64_t bound = 0;
  };
  struct LabelUse {
    std::string job;
    std::string name;
    uint64_t values = 0;
    uint64_t bound = 0;  // Where no rule for a metric says otherwise.
  };
  std::vector<Total> totals;
  // Each with the largest first.
  std::vector<Job> jobs;
  std::vector<MetricUse> metrics;
  std::vector<LabelUse> labels;
  uint64_t jobs_left_out = 0;  // Not in memory: their metrics and labels are not among these.
};

}  // namespace tacho::storage
