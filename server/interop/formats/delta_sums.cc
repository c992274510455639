#include "server/interop/formats/delta_sums.h"

#include <algorithm>
#include <utility>

namespace tacho::server::interop {
namespace {

constexpr int64_t kSilentNs = int64_t{3600} * 1'000'000'000;
// Looking at all series costs too much for each new one.
constexpr int64_t kLookEveryNs = int64_t{60} * 1'000'000'000;

}  // namespace

absl::StatusOr<DeltaSums::Added> DeltaSums::Add(absl::string_view key, int64_t time_ns,
                                                double delta) {
  absl::MutexLock lock(&mutex_);
  auto found = totals_.find(key);
  if (found == totals_.end()) {
    if (key.size() > kMaxKeyBytes || !HasRoom()) {
      return absl::ResourceExhaustedError("no room for the total of another series of deltas");
    }
    found = totals_.emplace(std::string(key), Total()).first;
  }
  Total& total = found->second;
  if (time_ns <= total.time_ns) return absl::AlreadyExistsError("added already");
  Added added{found->first, time_ns, total.time_ns, delta};
  total.time_ns = time_ns;
  total.value += delta;
  newest_ns_ = std::max(newest_ns_, time_ns);
  added.total = total.value;
  return added;
}

bool DeltaSums::HasRoom() {
  if (totals_.size() < max_series_) return true;
  if (looked_ns_ > newest_ns_ - kLookEveryNs) return false;
  looked_ns_ = newest_ns_;
  const int64_t oldest_ns = newest_ns_ - kSilentNs;
  absl::erase_if(totals_,
                 [oldest_ns](const auto& entry) { return entry.second.time_ns < oldest_ns; });
  return totals_.size() < max_series_;
}

void DeltaSums::TakeBack(const std::vector<Added>& all) {
  absl::MutexLock lock(&mutex_);
  for (auto added = all.rbegin(); added != all.rend(); ++added) {
    const auto found = totals_.find(added->key);
    if (found == totals_.end()) continue;
    found->second.value -= added->delta;
    if (found->second.time_ns == added->time_ns) found->second.time_ns = added->time_before_ns;
  }
}

}  // namespace tacho::server::interop
