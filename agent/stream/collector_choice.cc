#include "agent/stream/collector_choice.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"

namespace tacho::agent {

CollectorChoice::CollectorChoice(Options options)
    : options_(std::move(options)),
      collectors_(std::max<size_t>(options_.collectors, 1),
                  Collector{.backoff = client::Backoff(options_.backoff_min, options_.backoff_max,
                                                       options_.random)}) {}

void CollectorChoice::Welcomed(absl::Time now) {
  TACHO_CHECK(collector_ < collectors_.size());
  welcomed_ = true;
  fallback_.reset();
  PutReturnOff(now);
}

void CollectorChoice::Progressed() {
  collectors_[collector_].backoff.Reset();
  collectors_[collector_].fruitless = 0;
}

void CollectorChoice::Ended(absl::Time now, std::optional<absl::Duration> retry_after) {
  Collector& ended = collectors_[collector_];
  ended.begin_at = now + ended.backoff.Next(retry_after);
  return_at_ = absl::InfiniteFuture();
  const bool worked = std::exchange(welcomed_, false) && ++ended.fruitless < kMaxFruitless;
  if (!worked) ended.fruitless = 0;
  // A collector that wants to be left alone for long is left, where there is another.
  if (worked && ended.begin_at - now <= options_.backoff_max) return;
  collector_ = FirstReady(now);
  if (fallback_ == collector_) fallback_.reset();
}

void CollectorChoice::PutReturnOff(absl::Time now) {
  if (collector_ == 0) return;
  return_at_ = now + options_.return_after * (1 + options_.random() / 2);
}

void CollectorChoice::Returned(absl::Time now) {
  welcomed_ = false;
  return_at_ = absl::InfiniteFuture();
  fallback_ = collector_;
  collectors_[collector_].begin_at = now;
  collector_ = FirstReady(now);
  if (fallback_ == collector_) fallback_.reset();
}

size_t CollectorChoice::FirstReady(absl::Time now) const {
  const auto ready = std::find_if(collectors_.begin(), collectors_.end(),
                                  [now](const Collector& c) { return c.begin_at <= now; });
  const auto soonest = std::min_element(
      collectors_.begin(), collectors_.end(),
      [](const Collector& a, const Collector& b) { return a.begin_at < b.begin_at; });
  return static_cast<size_t>((ready != collectors_.end() ? ready : soonest) - collectors_.begin());
}

}  // namespace tacho::agent
