// The health of each source. The threads that poll the sources write it; the source about the agent
// itself reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tacho::agent {

struct SourceHealth {
  std::string name;
  uint64_t polls = 0;     // That have returned.
  uint64_t failures = 0;  // Polls among them after which status was not OK.
  absl::Duration busy;    // Time in polls that have returned.
  absl::Status status;    // After the last poll.
  // When status was last OK and then was not, or the other way; the machine's time.
  absl::Time since = absl::InfinitePast();
  // How long the poll that has not returned yet has been going on; 0: there is none.
  absl::Duration in_poll;
  absl::Duration next_poll_in;  // 0: it is due, or going on.
  uint64_t lost_rows = 0;       // Source::lost_rows().
};

// The end of a poll.
struct PollOutcome {
  absl::Status status = absl::OkStatus();
  absl::Time next = absl::InfinitePast();  // When the next one is due; MonotonicNow()'s.
  uint64_t lost_rows = 0;
};

// Thread-safe.
class SourceLedger {
 public:
  // Returns what the other calls name the source with.
  size_t Add(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);

  // Times of MonotonicNow().
  void BeginPoll(size_t source, absl::Time monotonic) ABSL_LOCKS_EXCLUDED(mutex_);
  // `now` is the machine's time.
  void EndPoll(size_t source, absl::Time monotonic, absl::Time now, PollOutcome outcome)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // In the order of Add().
  std::vector<SourceHealth> Read(absl::Time monotonic) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Line {
    SourceHealth health;
    absl::Time poll_began = absl::InfiniteFuture();  // InfiniteFuture(): not in a poll.
    absl::Time next_poll = absl::InfinitePast();
  };

  mutable absl::Mutex mutex_;
  std::vector<Line> lines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::agent
