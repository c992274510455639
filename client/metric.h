// Handles of what a recorder has declared.
#pragma once

#include <cstdint>

namespace tacho::client {

// A metric of one recorder. A default one is of none: what is set through it is refused.
class Metric {
 public:
  Metric() = default;

 private:
  friend class Recorder;
  friend class RecorderState;
  explicit Metric(uint32_t index) : index_(index) {}
  uint32_t index_ = UINT32_MAX;
};

// The same of a histogram.
class HistogramMetric {
 public:
  HistogramMetric() = default;

 private:
  friend class RecorderState;
  explicit HistogramMetric(uint32_t index) : index_(index) {}
  uint32_t index_ = UINT32_MAX;
};

// The row to come, where Recorder::Set() reaches it without a call. Of the library's own use.
struct OpenRow {
  double* values = nullptr;
  uint32_t metric_count = 0;
};

}  // namespace tacho::client
