// The live screen of one job, as lines.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/ctl/views/job_status.h"
#include "client/ctl/views/watch_model.h"

namespace tacho::ctl {

struct WatchView {
  std::string job;
  const JobStatus* status = nullptr;  // nullptr: the collector does not know the job yet.
  const WatchModel* model = nullptr;
  absl::Time now;
  absl::TimeZone zone;
  std::string note;    // About the connection; "" if it works.
  bool alarm = false;  // The note reports a problem.
};

struct ScreenSize {
  size_t width = 80;
  size_t height = 24;
};

// At most `size.height` lines of at most `size.width` columns: progress, metrics, the tasks that
// are worst, newest events, note. A count stands for what does not fit.
std::vector<std::string> DrawWatch(const WatchView& view, ScreenSize size, bool unicode,
                                   bool color);

// The same in one line, for output that is not a terminal.
std::string WatchLine(const WatchView& view);

// "12:01:30 checkpoint_saved step 99 task 0: message"
std::string EventLine(const v1::RecordedEvent& event, absl::TimeZone zone);

}  // namespace tacho::ctl
