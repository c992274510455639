// The query service's own metrics.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tacho::server::query {

// Thread-safe.
class QueryMetrics {
 public:
  // If `registry` is null, nobody sees the metrics.
  explicit QueryMetrics(std::shared_ptr<prometheus::Registry> registry);

  void Began() { active_.Increment(); }
  void Ended() { active_.Decrement(); }
  // A query that was answered or refused.
  void Record(const std::string& method, const absl::Status& status, absl::Duration took);
  // A watch that ended. How long it lasted says nothing about the collector.
  void RecordWatch(const std::string& method, const absl::Status& status);
  void WatchBegan() { watches_.Increment(); }
  void WatchEnded() { watches_.Decrement(); }
  void AddWatchedSamples(uint64_t samples) {
    watched_samples_.Increment(static_cast<double>(samples));
  }
  void AddSamples(uint64_t samples) { samples_.Increment(static_cast<double>(samples)); }

 private:
  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Gauge& active_;
  prometheus::Counter& samples_;
  prometheus::Gauge& watches_;
  prometheus::Counter& watched_samples_;
};

}  // namespace tacho::server::query
