#include "server/limits/refusal_ledger.h"

#include <algorithm>
#include <utility>

#include "server/limits/limit_text.h"

namespace tacho::server::limits {

void RefusalLedger::Add(Refusals refusals) {
  for (std::string* text : {&refusals.name, &refusals.example, &refusals.detail}) {
    *text = ShortText(std::move(*text));
  }
  Key key(refusals.job, refusals.name, refusals.limit, refusals.action);
  absl::MutexLock lock(&mutex_);
  if (const auto known = entries_.find(key); known != entries_.end()) {
    refusals.series += known->second.series;
    refusals.too_many = known->second.too_many;
    known->second = std::move(refusals);
    return;
  }
  if (entries_.size() >= kEntries) {
    const auto fewest = std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.series < b.second.series; });
    refusals.too_many = fewest->second.series;
    refusals.series += fewest->second.series;
    entries_.erase(fewest);
  }
  entries_.emplace(std::move(key), std::move(refusals));
}

std::vector<Refusals> RefusalLedger::Top(absl::string_view job, size_t top) const {
  std::vector<Refusals> found;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, refusals] : entries_) {
      if (job.empty() || refusals.job == job) found.push_back(refusals);
    }
  }
  std::sort(found.begin(), found.end(), [](const Refusals& a, const Refusals& b) {
    return std::tie(b.series, a.job, a.name, a.limit) < std::tie(a.series, b.job, b.name, b.limit);
  });
  if (found.size() > top) found.resize(top);
  return found;
}

}  // namespace tacho::server::limits
