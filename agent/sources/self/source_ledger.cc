#include "agent/sources/self/source_ledger.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"

namespace tacho::agent {

size_t SourceLedger::Add(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  lines_.emplace_back().health.name = std::string(name);
  return lines_.size() - 1;
}

void SourceLedger::BeginPoll(size_t source, absl::Time monotonic) {
  absl::MutexLock lock(&mutex_);
  TACHO_CHECK(source < lines_.size());
  lines_[source].poll_began = monotonic;
}

void SourceLedger::EndPoll(size_t source, absl::Time monotonic, absl::Time now,
                           PollOutcome outcome) {
  absl::MutexLock lock(&mutex_);
  TACHO_CHECK(source < lines_.size());
  Line& line = lines_[source];
  SourceHealth& health = line.health;
  if (health.polls == 0 || outcome.status.ok() != health.status.ok()) health.since = now;
  ++health.polls;
  if (!outcome.status.ok()) ++health.failures;
  health.busy += monotonic - line.poll_began;
  health.status = std::move(outcome.status);
  health.lost_rows = outcome.lost_rows;
  line.next_poll = outcome.next;
  line.poll_began = absl::InfiniteFuture();
}

std::vector<SourceHealth> SourceLedger::Read(absl::Time monotonic) const {
  absl::MutexLock lock(&mutex_);
  std::vector<SourceHealth> result;
  for (const Line& line : lines_) {
    SourceHealth& health = result.emplace_back(line.health);
    if (line.poll_began <= monotonic) {
      health.in_poll = monotonic - line.poll_began;
    } else {
      health.next_poll_in = std::max(line.next_poll - monotonic, absl::ZeroDuration());
    }
  }
  return result;
}

}  // namespace tacho::agent
