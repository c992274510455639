// Three threads meet here: gRPC's accept messages, the committer settles them, and the pacer and
// the timer wake streams. None of them calls out while it holds a lock.
#include "server/ingest/acks.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"

namespace tacho::server::ingest {
namespace {

// Streams that are due within one are woken together.
constexpr absl::Duration kGrain = absl::Milliseconds(10);

}  // namespace

AckPacer::AckPacer(absl::Duration tick) : tick_(tick), thread_([this] { Run(); }) {}

AckPacer::~AckPacer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void AckPacer::Schedule(std::shared_ptr<Paced> stream) {
  TACHO_CHECK(stream != nullptr);
  absl::MutexLock lock(&mutex_);
  scheduled_.push_back(std::move(stream));
}

AckPacer::Streams AckPacer::Take() {
  absl::MutexLock lock(&mutex_);
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !scheduled_.empty();
  };
  mutex_.Await(absl::Condition(&ready));
  return stopping_ ? Streams() : std::exchange(scheduled_, Streams());
}

void AckPacer::Run() {
  while (true) {
    const Streams streams = Take();
    if (streams.empty()) return;
    for (const auto& stream : streams) stream->OnTick();
    absl::MutexLock lock(&mutex_);
    AwaitFor(&mutex_, absl::Condition(&stopping_), tick_);
  }
}

WakeTimer::WakeTimer() : thread_([this] { Run(); }) {}

WakeTimer::~WakeTimer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void WakeTimer::At(absl::Time when, std::weak_ptr<Paced> stream) {
  TACHO_CHECK(when != absl::InfiniteFuture());
  absl::MutexLock lock(&mutex_);
  entries_.push({when, std::move(stream)});
}

std::vector<std::weak_ptr<Paced>> WakeTimer::TakeDue() {
  std::vector<std::weak_ptr<Paced>> due;
  absl::MutexLock lock(&mutex_);
  const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !entries_.empty();
  };
  mutex_.Await(absl::Condition(&any));
  if (stopping_) return due;
  const absl::Duration wait = std::max(entries_.top().when - MonotonicNow(), kGrain);
  const absl::Time planned = MonotonicNow() + wait;
  const auto sooner = [this, planned]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || entries_.top().when + kGrain < planned;
  };
  AwaitFor(&mutex_, absl::Condition(&sooner), wait);
  const absl::Time now = MonotonicNow();
  while (!stopping_ && !entries_.empty() && entries_.top().when <= now) {
    due.push_back(entries_.top().stream);
    entries_.pop();
  }
  return due;
}

void WakeTimer::Run() {
  pthread_setname_np(pthread_self(), "wake timer");
  for (;;) {
    for (const auto& weak : TakeDue()) {
      if (const auto stream = weak.lock()) stream->OnTick();
    }
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
  }
}

void PendingBytes::Remove(uint64_t bytes) {
  const uint64_t before = bytes_.fetch_sub(bytes);
  TACHO_CHECK(before >= bytes);
  if (waiting_.load() == 0 || IsFull()) return;
  // With nothing pending nobody else would come to wake the rest.
  Wake(before == bytes ? SIZE_MAX : kWokenAtOnce);
}

void PendingBytes::AwaitRoom(std::weak_ptr<Paced> stream) {
  {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(std::move(stream));
    waiting_ = queue_.size();
  }
  // Messages that were pending may have left before the stream was in the queue.
  if (!IsFull()) Wake(kWokenAtOnce);
}

void PendingBytes::Wake(size_t most) {
  std::vector<std::shared_ptr<Paced>> woken;
  {
    absl::MutexLock lock(&mutex_);
    while (!queue_.empty() && woken.size() < most) {
      if (auto live = queue_.front().lock()) woken.push_back(std::move(live));
      queue_.pop_front();
    }
    waiting_ = queue_.size();
  }
  TACHO_CHECK(woken.empty() || options_.pacer != nullptr);
  for (auto& stream : woken) options_.pacer->Schedule(std::move(stream));
}

void AckCoalescer::SetAgent(std::string agent_id, uint64_t generation) {
  absl::MutexLock lock(&mutex_);
  TACHO_CHECK(agent_id_.empty() && pending_messages_ == 0);
  agent_id_ = std::move(agent_id);
  generation_ = generation;
}

void AckCoalescer::Accepted(uint64_t sequence, uint64_t bytes) {
  options_.total_pending->Add(bytes);
  absl::MutexLock lock(&mutex_);
  accepted_sequence_ = std::max(accepted_sequence_, sequence);
  ++pending_messages_;
  pending_bytes_ += bytes;
}

void AckCoalescer::Settled(const absl::Status& status, uint64_t bytes) {
  bool wake = false;
  {
    absl::MutexLock lock(&mutex_);
    TACHO_CHECK(pending_messages_ > 0 && pending_bytes_ >= bytes);
    --pending_messages_;
    pending_bytes_ -= bytes;
    if (status.ok()) ack_due_ = true;
    if (!status.ok() && failure_.ok()) failure_ = status;
    wake = !std::exchange(woken_, true);
  }
  options_.total_pending->Remove(bytes);
  if (wake) options_.wake();
}

void AckCoalescer::Rejected(const Refused& refused, absl::FunctionRef<void(v1::Reject*)> describe) {
  absl::MutexLock lock(&mutex_);
  const auto [found, fresh] = rejects_.try_emplace({refused.folded, refused.reason});
  v1::Reject& reject = found->second;
  if (fresh) describe(&reject);
  reject.set_reason(refused.reason);
  reject.set_samples(reject.samples() + refused.samples);
  reject.set_series(reject.series() + refused.series);
}

AckCoalescer::State AckCoalescer::Look() {
  absl::MutexLock lock(&mutex_);
  woken_ = false;
  return {ack_due_, pending_messages_, pending_bytes_, failure_};
}

v1::Ack AckCoalescer::TakeAck() {
  v1::Ack ack;
  std::string agent_id;
  uint64_t generation = 0;
  {
    absl::MutexLock lock(&mutex_);
    // Before the store is asked, so that what becomes durable meanwhile is due again.
    ack_due_ = false;
    ack.set_accepted_sequence(accepted_sequence_);
    for (auto& [kind, reject] : rejects_) {
      *(kind.first ? ack.add_folded() : ack.add_rejects()) = std::move(reject);
    }
    rejects_.clear();
    agent_id = agent_id_;
    generation = generation_;
  }
  SetDurable(options_.store->DurableSequences(agent_id, generation), &ack);
  ack.set_clock_unix_ns(absl::ToUnixNanos(options_.now()));
  return ack;
}

}  // namespace tacho::server::ingest
