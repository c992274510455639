#include "server/query/read/timeline.h"

#include <algorithm>
#include <map>
#include <utility>

#include "proto/base/check.h"

namespace tacho::server::query {
namespace {

// Steps as intervals that neither overlap nor adjoin. Adding one that meets others joins them into
// one, so that adding many costs no more than sorting them.
class StepSet {
 public:
  // Adds `steps`. The part that was there already goes to *had, the rest to *added; both ascend.
  void Add(const StepInterval& steps, std::vector<StepInterval>* had,
           std::vector<StepInterval>* added) {
    StepInterval joined = steps;
    StepInterval left = steps;  // Not looked at yet.
    bool any_left = true;
    auto it = FirstThatMeets(steps);
    while (it != last_by_first_.end() && !IsBeyond(it->first, steps.last)) {
      const StepInterval known = {it->first, it->second};
      joined = {std::min(joined.first, known.first), std::max(joined.last, known.last)};
      it = last_by_first_.erase(it);
      const StepInterval common = {std::max(known.first, steps.first),
                                   std::min(known.last, steps.last)};
      if (common.first > common.last) continue;  // They adjoin.
      if (left.first < common.first) added->push_back({left.first, common.first - 1});
      had->push_back(common);
      any_left = common.last < steps.last;
      if (any_left) left.first = common.last + 1;
    }
    if (any_left) added->push_back(left);
    last_by_first_[joined.first] = joined.last;
  }

 private:
  using LastByFirst = std::map<int64_t, int64_t>;

  // Whether an interval that begins at `first` neither overlaps nor adjoins one that ends at
  // `last`.
  static bool IsBeyond(int64_t first, int64_t last) { return first > last && first - 1 > last; }
  LastByFirst::iterator FirstThatMeets(const StepInterval& steps) {
    const auto after = last_by_first_.upper_bound(steps.first);
    if (after == last_by_first_.begin()) return after;
    const auto before = std::prev(after);
    return IsBeyond(steps.first, before->second) ? after : before;
  }

  LastByFirst last_by_first_;
};

}  // namespace

Timeline::Timeline(std::vector<AttemptSteps> attempts) {
  std::sort(attempts.begin(), attempts.end(),
            [](const auto& a, const auto& b) { return a.attempt > b.attempt; });
  StepSet later;
  std::vector<StepInterval> own;
  for (const AttemptSteps& attempt : attempts) {
    std::vector<StepInterval> superseded;
    own.clear();
    later.Add(attempt.steps, &superseded, &own);
    for (const StepInterval& steps : own) spans_.push_back({attempt.attempt, steps});
    if (!superseded.empty()) superseded_[attempt.attempt] = std::move(superseded);
  }
  std::sort(spans_.begin(), spans_.end(),
            [](const auto& a, const auto& b) { return a.steps.first < b.steps.first; });
}

Timeline Timeline::Of(const std::vector<storage::AttemptInfo>& attempts) {
  std::vector<AttemptSteps> steps;
  for (const storage::AttemptInfo& info : attempts) {
    if (!info.extent.first_step.has_value()) continue;
    TACHO_CHECK(info.extent.last_step.has_value());
    steps.push_back({info.attempt, {*info.extent.first_step, *info.extent.last_step}});
  }
  return Timeline(std::move(steps));
}

std::span<const StepInterval> Timeline::SupersededOf(uint32_t attempt) const {
  const auto found = superseded_.find(attempt);
  if (found == superseded_.end()) return {};
  return found->second;
}

bool Overlaps(std::span<const StepInterval> intervals, int64_t first, int64_t last) {
  const auto reaches = [](const StepInterval& interval, int64_t step) {
    return interval.last < step;
  };
  const auto found = std::lower_bound(intervals.begin(), intervals.end(), first, reaches);
  return found != intervals.end() && found->first <= last;
}

}  // namespace tacho::server::query
