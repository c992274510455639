// What one run of a file of real data recorded, as windows of the past at any moment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/conditions/window/window.h"

namespace tacho::conditions {

struct RecordedJob {
  std::string name;                                   // "tfevents/phlippe-saved_models/…".
  std::string data_set;                               // The first part of it.
  std::vector<server::conditions::TaskWindow> tasks;  // With all that was recorded, by time.

  int64_t first_time_ns() const;
  int64_t last_time_ns() const;
  // Values of the training metric that has the most.
  size_t recorded_steps() const;
  // The times at which something was recorded, ascending, each once.
  std::vector<int64_t> Times() const;
};

// As the collector would have seen it: of each track at most `max_points`, the newest half of them
// all that there are, before that ever fewer.
server::conditions::JobWindow WindowAt(const RecordedJob& job, int64_t now_ns,
                                       size_t max_points = 2048);

// All runs below a directory of the real data that have training signals, by name. Files without
// times get one second a step.
//   NOT_FOUND  there is no such directory.
absl::StatusOr<std::vector<RecordedJob>> LoadRecordedJobs(const std::string& directory);

}  // namespace tacho::conditions
