// A rate without a thread and without a queue: takers pay for what they take by waiting.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tacho::server::edge {

// Tokens a second; 0 is no limit. A bucket holds `burst_ns` worth of them.
struct Rate {
  uint64_t per_second = 0;
  int64_t burst_ns = 0;
};

// Thread-safe, without a lock. Times are ns of any clock that does not go back.
class TokenBucket {
 public:
  // One taker cannot put the bucket further into debt than this at once.
  static constexpr int64_t kMaxCostNs = int64_t{600} * 1'000'000'000;

  // Takes `tokens` even if the bucket holds fewer, because they have been sent already. Returns how
  // long the taker must wait before it takes more; 0 if not at all. A taker that comes while others
  // wait gets a longer wait, so that together they keep to the rate.
  int64_t Take(uint64_t tokens, const Rate& rate, int64_t now_ns) {
    if (rate.per_second == 0) return 0;
    const double exact = 1e9 * static_cast<double>(tokens) / static_cast<double>(rate.per_second);
    const auto cost = static_cast<int64_t>(std::min(exact, static_cast<double>(kMaxCostNs)));
    int64_t old = paid_until_ns_.load(std::memory_order_relaxed);
    int64_t paid = 0;
    do {
      paid = std::max(old, now_ns - rate.burst_ns) + cost;
    } while (!paid_until_ns_.compare_exchange_weak(old, paid, std::memory_order_relaxed));
    return std::max<int64_t>(paid - now_ns, 0);
  }

  // Gives back what was taken at this rate.
  void GiveBack(uint64_t tokens, const Rate& rate) {
    if (rate.per_second == 0) return;
    const double exact = 1e9 * static_cast<double>(tokens) / static_cast<double>(rate.per_second);
    const auto cost = static_cast<int64_t>(std::min(exact, static_cast<double>(kMaxCostNs)));
    paid_until_ns_.fetch_sub(cost, std::memory_order_relaxed);
  }

  // How long it takes until the bucket is full again.
  int64_t UntilFull(const Rate& rate, int64_t now_ns) const {
    const int64_t paid = paid_until_ns_.load(std::memory_order_relaxed);
    return paid <= now_ns - rate.burst_ns ? 0 : paid - (now_ns - rate.burst_ns);
  }

  // Nothing is owed, so that forgetting the bucket changes nothing.
  bool IsFull(const Rate& rate, int64_t now_ns) const { return UntilFull(rate, now_ns) == 0; }

 private:
  // The time by which everything taken so far would have come at the rate.
  std::atomic<int64_t> paid_until_ns_{INT64_MIN};
};

// The buckets of agents or of jobs, by name. Thread-safe. Holds a bucket while somebody else does,
// and until it is full again, so that an agent that reconnects continues with its old bucket.
// Memory grows with the names seen within the last `Rate::burst_ns`.
class TokenBuckets {
 public:
  std::shared_ptr<TokenBucket> Find(absl::string_view name, const Rate& rate, int64_t now_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return buckets_.size();
  }

 private:
  void Sweep(const Rate& rate, int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<TokenBucket>> buckets_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = 1024;  // Twice what the last sweep left.
};

}  // namespace tacho::server::edge
