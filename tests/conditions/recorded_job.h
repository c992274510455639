// One recorded run from a file of real data, and the window that a detector would have seen at any
// moment of it.
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
  // The number of values of the training metric that has the most.
  size_t recorded_steps() const;
  // The times at which something was recorded, ascending, each once.
  std::vector<int64_t> Times() const;
};

// The window as the collector would have had it: at most `max_points` of each track, the newest
// half of them in full, older ones ever more sparsely.
server::conditions::JobWindow WindowAt(const RecordedJob& job, int64_t now_ns,
                                       size_t max_points = 2048);

// All runs below a directory of the real data that have training signals, by name. Files without
// times get one second a step.
//   NOT_FOUND  there is no such directory.
absl::StatusOr<std::vector<RecordedJob>> LoadRecordedJobs(const std::string& directory);

}  // namespace tacho::conditions
