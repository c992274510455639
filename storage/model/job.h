// What the store knows of a job as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/model/series.h"

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
  uint32_t attempt = 0;  // Attempt of the newest row.
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
  // Grows with each event and each change of attributes since the store was opened.
  uint64_t told = 0;
};

struct JobDetail {
  JobSummary summary;
  std::vector<AttemptInfo> attempts;  // Ascending.
  std::vector<TaskInfo> tasks;        // By (task, host).
  std::vector<Metric> metrics;        // By name.
};

// The tasks and chips that recorded a job, as its layouts and labels name them: every one for which
// a series was registered, whether or not rows followed.
struct JobEntities {
  // A task of one attempt on one host.
  struct Incarnation {
    uint32_t attempt = 0;
    std::optional<uint32_t> task;
    std::string host;
    uint64_t series = 0;
  };
  // A value of the label "chip" in series of one task and host.
  struct Chip {
    std::optional<uint32_t> task;
    std::string host;
    std::string chip;
    uint64_t series = 0;
  };
  std::vector<Incarnation> incarnations;  // By (attempt, task, host).
  std::vector<Chip> chips;                // By (host, chip, task); chips that are numbers by value.
};

struct MetricUse {
  Metric metric;
  uint64_t series = 0;
  std::vector<std::string> labels;  // Names of labels that its series have, ascending.
};

// What a list of jobs shows or selects by, besides the summary.
struct JobOutline {
  uint64_t metrics = 0;
  std::optional<uint32_t> attempt;                // The highest-numbered one.
  std::map<std::string, std::string> attributes;  // The attributes of that attempt.
  // Each attribute that some attempt has, with the value of the latest of these.
  std::map<std::string, std::string> merged_attributes;
  std::vector<std::string> hosts;  // Ascending; only if they were asked for.
};

}  // namespace tacho::storage
