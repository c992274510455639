// The engine's own metrics.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "absl/time/time.h"
#include "server/conditions/window/window_builder.h"

namespace tacho::server::conditions {

// One thread at a time. The registry must outlive it.
class ConditionMetrics {
 public:
  explicit ConditionMetrics(prometheus::Registry* registry);

  void Judged(absl::Duration took);
  void FellBehind() { fallen_behind_.Increment(); }
  void EventsSettled(uint64_t stored, uint64_t refused);
  void Show(const WindowBuilder::Stats& stats);

 private:
  prometheus::Counter& judged_;
  prometheus::Histogram& seconds_;
  prometheus::Counter& fallen_behind_;
  prometheus::Counter& events_stored_;
  prometheus::Counter& events_refused_;
  prometheus::Gauge& jobs_;
  prometheus::Gauge& series_;
  prometheus::Gauge& bytes_;
  prometheus::Counter& series_left_out_;
  prometheus::Counter& jobs_left_out_;
  WindowBuilder::Stats shown_;
};

}  // namespace tacho::server::conditions
