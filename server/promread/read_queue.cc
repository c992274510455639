#include "server/promread/read_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"

namespace tacho::server::promread {

void ReadQueue::Add(const CallPtr& call) {
  bool full = false;
  {
    absl::MutexLock lock(&mutex_);
    full = waiting_.size() == kMaxWaitingReads;
    if (!full) waiting_.push_back(call);
  }
  if (!full) return StartWaiting();
  const absl::Status status = errors::ErrorOf(
      errors::Failure::kOverloaded,
      absl::StrCat(kMaxWaitingReads, " requests of remote read wait already: try again"));
  queries_->CountAnswer(call->asked().method, status);
  call->Finish(status);
}

ReadQueue::CallPtr ReadQueue::TakeWaiting() {
  const uint32_t most = std::max(queries_->limits().max_concurrent() / share_, 1u);
  absl::MutexLock lock(&mutex_);
  if (waiting_.empty() || running_ >= most) return nullptr;
  CallPtr call = std::move(waiting_.front());
  waiting_.pop_front();
  ++running_;
  return call;
}

absl::Status ReadQueue::Start(const CallPtr& call) {
  return queries_->RunOnWorker(
      call->asked(), [call](const query::WorkerPool::Leave& leave) { return call->Work(leave); },
      [this, call](const absl::Status& status) {
        {
          absl::MutexLock lock(&mutex_);
          --running_;
        }
        call->Finish(status);
        StartWaiting();
      });
}

void ReadQueue::StartWaiting() {
  while (CallPtr call = TakeWaiting()) {
    const absl::Status taken = Start(call);
    if (taken.ok()) continue;
    {
      absl::MutexLock lock(&mutex_);
      --running_;
      // Other queries have all workers: the end of a read that runs is the next chance.
      if (running_ > 0 && !queries_->draining()) {
        waiting_.push_front(std::move(call));
        return;
      }
    }
    call->Finish(taken);
  }
}

}  // namespace tacho::server::promread
