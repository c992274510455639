// When one source is polled next: as it wants, and more rarely while it fails.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/self/source_ledger.h"
#include "proto/base/clock.h"

namespace tacho::agent {

struct AgentClock {
  std::function<absl::Time()> now = absl::Now;           // The machine's: what rows carry.
  std::function<absl::Time()> monotonic = MonotonicNow;  // For waits and deadlines.
};

// One thread.
class SourceTurn {
 public:
  // A source that fails at every poll costs little, and is back within a minute of its cure.
  static constexpr absl::Duration kFirstPause = absl::Seconds(1);
  static constexpr absl::Duration kLongestPause = absl::Minutes(1);

  // The sink and the ledger are not owned; they must outlive this.
  SourceTurn(std::unique_ptr<Source> source, RowSink* sink, SourceLedger* ledger, AgentClock clock);

  // Polls the source and returns when to do so again, in the monotonic clock: a source thinks in
  // the machine's time, waiting does not, lest setting the clock back an hour silences it for an
  // hour.
  absl::Time Poll();
  // Polls until the source has nothing more to read or the (monotonic) deadline has passed.
  void PollLast(absl::Time deadline);

  absl::string_view name() const { return source_->name(); }

 private:
  const std::unique_ptr<Source> source_;
  RowSink* const sink_;
  SourceLedger* const ledger_;
  const AgentClock clock_;
  const size_t line_;  // In the ledger.
  absl::Duration pause_ = absl::ZeroDuration();
};

}  // namespace tacho::agent
