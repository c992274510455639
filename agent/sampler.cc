#include "agent/sampler.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "agent/stream/monotonic_time.h"

namespace tacho::agent {
namespace {

// A source that always has more to read must not keep the agent from stopping.
constexpr absl::Duration kLastPolls = absl::Seconds(1);

}  // namespace

Sampler::Sampler(std::vector<std::unique_ptr<Source>> sources, RowSink* sink) : sink_(sink) {
  for (auto& source : sources) turns_.push_back({.source = std::move(source)});
}

Sampler::~Sampler() { Stop(); }

void Sampler::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Sampler::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Sampler::Run() {
  for (;;) {
    PollDue();
    absl::MutexLock lock(&mutex_);
    const absl::Duration wait = NextDue() - MonotonicNow();
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), wait)) break;
  }
  PollLast();
}

void Sampler::PollDue() {
  for (Turn& turn : turns_) {
    if (MonotonicNow() < turn.due) continue;
    const absl::Time now = absl::Now();
    const absl::Time next = turn.source->Poll(now, sink_);
    // A source thinks in the machine's time; waiting does not, lest setting the clock back an hour
    // silences it for an hour.
    turn.due = MonotonicNow() + (next - now);
  }
}

absl::Time Sampler::NextDue() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Turn& turn : turns_) next = std::min(next, turn.due);
  return next;
}

void Sampler::PollLast() {
  const absl::Time end = MonotonicNow() + kLastPolls;
  for (Turn& turn : turns_) {
    bool more = true;
    while (more) {
      const absl::Time now = absl::Now();
      more = turn.source->Poll(now, sink_) <= now && MonotonicNow() < end;
    }
  }
}

}  // namespace tacho::agent
