// What the store knows of a job as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/series.h"

namespace tacho::storage {

// Extent of some rows. Times are ns since the Unix epoch; first > last means there are none.
struct Extent {
  int64_t first_time_ns = INT64_MAX;
  int64_t last_time_ns = INT64_MIN;
  std::optional<int64_t> first_step;
  std::optional<int64_t> last_step;

  void Include(int64_t time_ns);
  void IncludeStep(int64_t step);  // kNoStep changes nothing.
  void Include(const Extent& other);
};

struct AttemptInfo {
  uint32_t attempt = 0;
  Extent extent;
  std::map<std::string, std::string> attributes;
};

struct TaskInfo {
  std::optional<uint32_t> task;
  std::string host;
  uint32_t attempt = 0;  // Of the newest row.
  Extent extent;
  uint64_t series = 0;
};

struct JobSummary {
  std::string name;
  Extent extent;
  uint32_t attempts = 0;
  uint32_t tasks = 0;  // Distinct task numbers.
  uint32_t hosts = 0;
  uint64_t series = 0;
};

struct JobDetail {
  JobSummary summary;
  std::vector<AttemptInfo> attempts;  // Ascending.
  std::vector<TaskInfo> tasks;        // By (task, host).
  std::vector<Metric> metrics;        // By name.
};

}  // namespace tacho::storage
