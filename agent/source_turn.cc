#include "agent/source_turn.h"

#include <algorithm>
#include <utility>

namespace tacho::agent {

SourceTurn::SourceTurn(std::unique_ptr<Source> source, RowSink* sink, SourceLedger* ledger,
                       AgentClock clock)
    : source_(std::move(source)),
      sink_(sink),
      ledger_(ledger),
      clock_(std::move(clock)),
      line_(ledger->Add(source_->name())) {}

absl::Time SourceTurn::Poll() {
  // Both clocks are read together: the time that the poll takes must not put the next one off.
  const absl::Time began = clock_.monotonic();
  const absl::Time now = clock_.now();
  ledger_->BeginPoll(line_, began);
  const absl::Time next = source_->Poll(now, sink_);
  const absl::Status status = source_->status();
  pause_ = status.ok() ? absl::ZeroDuration() : std::clamp(2 * pause_, kFirstPause, kLongestPause);
  const absl::Time due = began + std::max(next - now, pause_);
  ledger_->EndPoll(line_, clock_.monotonic(), now,
                   {.status = status, .next = due, .lost_rows = source_->lost_rows()});
  return due;
}

void SourceTurn::PollLast(absl::Time deadline) {
  while (clock_.monotonic() < deadline) {
    const absl::Time due = Poll();
    if (due > clock_.monotonic()) return;
  }
}

}  // namespace tacho::agent
