// The buckets of agents or of jobs, by name.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/edge/token_bucket.h"

namespace tacho::server::edge {

// Thread-safe. Holds a bucket while somebody else does and until it is full again, so that an agent
// that reconnects goes on with the one it had: memory is that of the names of the last
// `Rate::burst_ns`.
class BucketRegistry {
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
