#include "server/edge/token_bucket.h"

#include <algorithm>

namespace tacho::server::edge {
namespace {

constexpr size_t kLeastSweep = 1024;

}  // namespace

std::shared_ptr<TokenBucket> TokenBuckets::Find(absl::string_view name, const Rate& rate,
                                                int64_t now_ns) {
  absl::MutexLock lock(&mutex_);
  if (const auto found = buckets_.find(name); found != buckets_.end()) return found->second;
  if (buckets_.size() >= sweep_at_) Sweep(rate, now_ns);
  return buckets_.emplace(name, std::make_shared<TokenBucket>()).first->second;
}

void TokenBuckets::Sweep(const Rate& rate, int64_t now_ns) {
  absl::erase_if(buckets_, [&](const auto& entry) {
    return entry.second.use_count() == 1 && entry.second->IsFull(rate, now_ns);
  });
  sweep_at_ = std::max(kLeastSweep, 2 * buckets_.size());
}

}  // namespace tacho::server::edge
