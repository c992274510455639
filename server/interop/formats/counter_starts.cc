#include "server/interop/formats/counter_starts.h"

#include <utility>

#include "absl/hash/hash.h"

namespace tacho::server::interop {

bool CounterStarts::Note(absl::string_view key, int64_t start_ns, std::vector<Reset>* resets) {
  if (start_ns <= 0) return false;
  const uint64_t series = absl::HashOf(key);
  absl::MutexLock lock(&mutex_);
  if (starts_.size() >= max_series_ && !starts_.contains(series)) starts_.clear();
  const auto [known, is_new] = starts_.try_emplace(series, start_ns);
  // What began earlier comes late.
  if (is_new || start_ns <= known->second) return false;
  resets->push_back({series, start_ns, std::exchange(known->second, start_ns)});
  return true;
}

void CounterStarts::TakeBack(const std::vector<Reset>& resets) {
  absl::MutexLock lock(&mutex_);
  for (auto reset = resets.rbegin(); reset != resets.rend(); ++reset) {
    const auto known = starts_.find(reset->series);
    if (known == starts_.end() || known->second != reset->start_ns) continue;
    known->second = reset->start_before_ns;
  }
}

}  // namespace tacho::server::interop
