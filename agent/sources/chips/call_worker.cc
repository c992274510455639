#include "agent/sources/chips/call_worker.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/timed_wait.h"

namespace tacho::agent {

struct CallWorker::State {
  absl::Mutex mutex;
  std::function<void()> call ABSL_GUARDED_BY(mutex);
  bool busy ABSL_GUARDED_BY(mutex) = false;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::thread thread;  // Only the owner touches it.

  bool Idle() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return !busy; }
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return busy || stopping; }
  void Run() ABSL_LOCKS_EXCLUDED(mutex);
};

void CallWorker::State::Run() {
  for (;;) {
    std::function<void()> work;
    {
      const absl::MutexLock lock(&mutex);
      mutex.Await(absl::Condition(this, &State::HasWork));
      if (!busy) return;
      work = std::move(call);
      call = nullptr;
    }
    work();
    work = nullptr;  // Its objects go before anybody hears that it is done.
    const absl::MutexLock lock(&mutex);
    busy = false;
  }
}

CallWorker::CallWorker() : state_(std::make_shared<State>()) {
  state_->thread = std::thread([state = state_] { state->Run(); });
}

CallWorker::~CallWorker() {
  bool idle = false;
  {
    const absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
    idle = !state_->busy;
  }
  if (idle) {
    state_->thread.join();
  } else {
    state_->thread.detach();
  }
}

bool CallWorker::Start(std::function<void()> call) {
  const absl::MutexLock lock(&state_->mutex);
  if (state_->busy) return false;
  state_->call = std::move(call);
  state_->busy = true;
  return true;
}

bool CallWorker::idle() const {
  const absl::MutexLock lock(&state_->mutex);
  return !state_->busy;
}

bool CallWorker::WaitIdle(absl::Duration most) const {
  const absl::MutexLock lock(&state_->mutex);
  return AwaitFor(&state_->mutex, absl::Condition(state_.get(), &State::Idle), most);
}

}  // namespace tacho::agent
