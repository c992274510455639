// Reads that wait for each other. Prometheus sends a read for each panel of a dashboard at once,
// and never again: what is refused is missing in its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/query/query_service.h"

namespace tacho::server::promread {

// The most reads that wait in a queue. Each holds its request.
inline constexpr size_t kMaxWaitingReads = 128;

// Thread-safe.
class ReadQueue {
 public:
  class Call {
   public:
    virtual ~Call() = default;
    virtual query::QueryService::Asked asked() const = 0;
    // On a worker, once at most.
    virtual absl::Status Work(const query::WorkerPool::Leave& leave) = 0;
    // Once, with what Work() returned or why it was not called.
    virtual void Finish(const absl::Status& status) = 0;
  };
  using CallPtr = std::shared_ptr<Call>;

  // Calls have one of `share` of the workers of `queries`, and one at least. `queries` is not
  // owned; it must outlive the queue, as the queue must outlive its Drain().
  ReadQueue(query::QueryService* queries, uint32_t share) : queries_(queries), share_(share) {}

  // Returns at once. Too many calls are refused with UNAVAILABLE (OVERLOADED), as is a call for
  // which there is no worker while none of the queue runs.
  void Add(const CallPtr& call) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Gives workers to calls that wait, as far as they may have some.
  void StartWaiting() ABSL_LOCKS_EXCLUDED(mutex_);
  // OK if a worker has taken the call.
  absl::Status Start(const CallPtr& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // The next call that may start, which counts as running then; null: none.
  CallPtr TakeWaiting() ABSL_LOCKS_EXCLUDED(mutex_);

  query::QueryService* const queries_;
  const uint32_t share_;
  absl::Mutex mutex_;
  std::deque<CallPtr> waiting_ ABSL_GUARDED_BY(mutex_);  // In the order of their requests.
  uint32_t running_ ABSL_GUARDED_BY(mutex_) = 0;         // Calls that have a worker.
};

}  // namespace tacho::server::promread
