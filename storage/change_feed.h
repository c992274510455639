// Commits to a job, delivered to its subscribers as they happen.
//
//   committer -> ChangeFeed -> buffer of each subscription of that job -> Subscription::Take()
//
// A commit never waits for a subscriber: one whose buffer is full has fallen behind, for good.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/journal/rows_entry.h"
#include "storage/model/event.h"
#include "storage/model/series.h"

namespace tacho::storage {

// Rows or an event, durable and readable.
struct Change {
  LayoutPtr layout;  // Null for an event.
  // Rows as they were appended, stale markers included. They may lie before others that came
  // earlier, and replace some with the same (time, attempt, step).
  std::shared_ptr<const std::string> bytes;
  RowsEntry rows;  // In *bytes.
  std::shared_ptr<const Event> event;
};

struct SubscribeOptions {
  std::string job;         // Exact; it need not exist yet.
  bool every_job = false;  // Instead of `job`.
  // At most so much waits to be taken, but always one change.
  uint64_t buffer_bytes = 2u << 20;
  // Called on the committer's thread after each commit that had something for the subscription, and
  // perhaps once more after its end: return fast, call neither the store nor the subscription.
  std::function<void()> on_change;
};

// Thread-safe. Ends with its destruction; must not outlive the store.
class Subscription {
 public:
  virtual ~Subscription() = default;

  // Replaces *changes with what has been committed since the last call, in that order.
  //   RESOURCE_EXHAUSTED  the buffer was full and something is missing: nothing comes any more.
  virtual absl::Status Take(std::vector<Change>* changes) = 0;
};

// The store's part of it. Add...() and Announce() are for one thread at a time, the committer's.
class ChangeFeed {
 public:
  // It must not outlive the feed.
  std::unique_ptr<Subscription> Subscribe(SubscribeOptions options) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether there is a subscription. One that began during a commit would be missed:
  // Committer::BetweenCommits() keeps it from doing so.
  bool has_subscribers() const { return subscriptions_.load(std::memory_order_relaxed) > 0; }

  // `entry` is one that rows_entry.h made of the layout. It is what subscribers share.
  void AddRows(const LayoutPtr& layout, std::string entry) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddEvent(const std::shared_ptr<const Event>& event) ABSL_LOCKS_EXCLUDED(mutex_);
  // After the last change of a commit: calls on_change of the subscriptions that got something.
  void Announce();

 private:
  class Buffer;
  class Member;
  using BufferPtr = std::shared_ptr<Buffer>;

  void Add(absl::string_view job, const Change& change, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsWatched(absl::string_view job) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const BufferPtr& buffer) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<size_t> subscriptions_ = 0;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::vector<BufferPtr>> by_job_ ABSL_GUARDED_BY(mutex_);
  std::vector<BufferPtr> of_every_job_ ABSL_GUARDED_BY(mutex_);
  std::vector<BufferPtr> to_announce_;  // The committer's.
};

}  // namespace tacho::storage
