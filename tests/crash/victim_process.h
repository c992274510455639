// A process that a campaign starts and kills. It is forked without exec: a life takes no longer
// than what it does. So the campaign itself must have no threads.
#pragma once

#include <functional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/crash/wire.h"

namespace tacho::crash {

struct VictimLife {
  int status = 0;        // As waitpid() has it.
  bool killed = false;   // By us.
  bool opened = false;   // It reported its contents.
  bool overdue = false;  // It did not within a minute.
};

// Runs `body` with the pipe that it reports to, hands each report to `take`, and kills it
// `kill_after` after it was started, or, with `from_ready`, after it has reported its contents.
// `body` returns its exit status.
VictimLife LiveAndBeKilled(const std::function<int(int fd)>& body, absl::Duration kill_after,
                           bool from_ready,
                           const std::function<void(const Report&, absl::string_view text)>& take);

}  // namespace tacho::crash
