#include "agent/sources/self/source_ledger.h"

#include <utility>

namespace tacho::agent {

size_t SourceLedger::Add(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  lines_.emplace_back().health.name = std::string(name);
  return lines_.size() - 1;
}

void SourceLedger::BeginPoll(size_t source, absl::Time monotonic) {
  absl::MutexLock lock(&mutex_);
  lines_[source].poll_began = monotonic;
}

void SourceLedger::EndPoll(size_t source, absl::Time monotonic, absl::Time now,
                           absl::Status status) {
  absl::MutexLock lock(&mutex_);
  Line& line = lines_[source];
  SourceHealth& health = line.health;
  if (health.polls == 0 || status.ok() != health.status.ok()) health.since = now;
  ++health.polls;
  if (!status.ok()) ++health.failures;
  health.busy += monotonic - line.poll_began;
  health.status = std::move(status);
  line.poll_began = absl::InfiniteFuture();
}

std::vector<SourceHealth> SourceLedger::Read(absl::Time monotonic) const {
  absl::MutexLock lock(&mutex_);
  std::vector<SourceHealth> result;
  for (const Line& line : lines_) {
    result.push_back(line.health);
    if (line.poll_began <= monotonic) result.back().in_poll = monotonic - line.poll_began;
  }
  return result;
}

}  // namespace tacho::agent
