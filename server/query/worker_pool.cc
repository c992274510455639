#include "server/query/worker_pool.h"

#include <utility>

#include "proto/base/check.h"

namespace tacho::server::query {

WorkerPool::WorkerPool(uint32_t max_threads) : max_threads_(max_threads) {}

WorkerPool::~WorkerPool() { Close(); }

WorkerPool::Admission WorkerPool::Run(std::function<void()> work) {
  return RunAnswer([work = std::move(work)](const Leave&) { work(); });
}

WorkerPool::Admission WorkerPool::RunAnswer(std::function<void(const Leave&)> work) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return Admission::kClosed;
  if (active_ - spare_ >= max_threads_) return Admission::kFull;
  Start({std::move(work), /*spare=*/false});
  return Admission::kAccepted;
}

bool WorkerPool::RunSpare(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  if (closed_ || active_ >= max_threads_ / 2) return false;
  Start({[work = std::move(work)](const Leave&) { work(); }, /*spare=*/true});
  return true;
}

void WorkerPool::Start(Work work) {
  ++active_;
  if (work.spare) ++spare_;
  waiting_.push_back(std::move(work));
  if (threads_.size() < active_ + leaving_) threads_.emplace_back([this] { Loop(); });
}

void WorkerPool::SetMaxThreads(uint32_t max_threads) {
  absl::MutexLock lock(&mutex_);
  max_threads_ = max_threads;
}

uint32_t WorkerPool::active() const {
  absl::MutexLock lock(&mutex_);
  return active_;
}

void WorkerPool::Close() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return active_ == 0 && leaving_ == 0;
  };
  mutex_.Await(absl::Condition(&idle));
}

void WorkerPool::Loop() {
  for (;;) {
    Work work;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &WorkerPool::WorkOrClosed));
      if (waiting_.empty()) return;
      work = std::move(waiting_.back());
      waiting_.pop_back();
    }
    Do(std::move(work));
  }
}

void WorkerPool::Do(Work work) {
  bool left = false;  // Guarded by mutex_.
  const Leave leave = [&] {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(left, true)) return;
    TACHO_CHECK(active_ > 0);
    --active_;
    if (work.spare) --spare_;
    ++leaving_;
  };
  work.run(leave);
  work.run = nullptr;  // Frees what it holds before Close() can return.
  leave();
  absl::MutexLock lock(&mutex_);
  TACHO_CHECK(leaving_ > 0);
  --leaving_;
}

}  // namespace tacho::server::query
