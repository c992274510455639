#include "server/ingest/definition_queue.h"

#include <pthread.h>

#include <utility>

#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"

namespace tacho::server::ingest {
namespace {

// A shorter sleep costs more than it gives.
constexpr absl::Duration kLeastSleep = absl::Milliseconds(1);

int64_t MonotonicNs() { return absl::ToUnixNanos(MonotonicNow()); }

}  // namespace

DefinitionQueue::DefinitionQueue() : thread_([this] { Run(); }) {}

DefinitionQueue::~DefinitionQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

bool DefinitionQueue::IsFor(size_t bytes) const {
  return bytes > kSmallBytes || at_once_.UntilFull(kAtOnce, MonotonicNs()) > kAtOnce.burst_ns;
}

void DefinitionQueue::Defined(uint64_t series) {
  if (!IsThread()) at_once_.Take(series, kAtOnce, MonotonicNs());
}

void DefinitionQueue::Add(int64_t debt, std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  queue_.emplace(debt, std::move(work));
}

void DefinitionQueue::Pause() {
  if (!IsThread()) return;
  const absl::Duration worked = MonotonicNow() - working_since_;
  const absl::Duration rest = worked * ((1 - kShare) / kShare);
  if (rest < kLeastSleep) return;
  {
    absl::MutexLock lock(&mutex_);
    AwaitFor(&mutex_, absl::Condition(&stopping_), rest);
  }
  working_since_ = MonotonicNow();
}

void DefinitionQueue::Run() {
  pthread_setname_np(pthread_self(), "definitions");
  for (;;) {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&due));
      if (stopping_) return;
      work = std::move(queue_.begin()->second);
      queue_.erase(queue_.begin());
    }
    working_since_ = MonotonicNow();
    work();
    work = nullptr;  // It may hold a stream.
    Pause();
  }
}

}  // namespace tacho::server::ingest
