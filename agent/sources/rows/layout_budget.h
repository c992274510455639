// How often a source may define another layout.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace tacho::agent {

// Each new layout is kept by the spool and the collector as long as they run: series that change
// all the time (a label with a time or an id in it) would fill both. One thread.
class LayoutBudget {
 public:
  // Pods and processes that come and go change the layout some times a day.
  static constexpr int kAtOnce = 32;
  static constexpr absl::Duration kOneMoreEvery = absl::Minutes(10);

  bool Take(absl::Time now) {
    if (left_ < kAtOnce && now >= refilled_ + kOneMoreEvery) {
      const int more = static_cast<int>((now - refilled_) / kOneMoreEvery);
      left_ = std::min(kAtOnce, left_ + more);
      refilled_ = now;
    }
    if (left_ == kAtOnce || now < refilled_) refilled_ = now;  // The latter: the clock was set.
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  int left_ = kAtOnce;
  absl::Time refilled_ = absl::InfinitePast();
};

}  // namespace tacho::agent
