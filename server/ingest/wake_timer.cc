#include "server/ingest/wake_timer.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "proto/base/clock.h"

namespace tacho::server::ingest {
namespace {

// Those due within one are woken together.
constexpr absl::Duration kGrain = absl::Milliseconds(10);

}  // namespace

WakeTimer::WakeTimer() : thread_([this] { Run(); }) {}

WakeTimer::~WakeTimer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void WakeTimer::At(absl::Time when, std::weak_ptr<Paced> stream) {
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
  mutex_.AwaitWithTimeout(absl::Condition(&sooner), wait);
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

}  // namespace tacho::server::ingest
