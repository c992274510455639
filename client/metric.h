// Handles of a recorder's metrics and histograms.
#pragma once

#include <cstdint>

namespace tacho::client {

// A metric of one recorder. A default-constructed handle belongs to none: setting it is refused.
class Metric {
 public:
  Metric() = default;

 private:
  friend class Recorder;
  friend class RecorderState;
  explicit Metric(uint32_t index) : index_(index) {}
  uint32_t index_ = UINT32_MAX;
};

// The same for a histogram.
class HistogramMetric {
 public:
  HistogramMetric() = default;

 private:
  friend class RecorderState;
  explicit HistogramMetric(uint32_t index) : index_(index) {}
  uint32_t index_ = UINT32_MAX;
};

// The same for the metrics of a collective: its seconds and its bytes.
class CollectiveMetric {
 public:
  CollectiveMetric() = default;

 private:
  friend class RecorderState;
  explicit CollectiveMetric(uint32_t index) : index_(index) {}
  uint32_t index_ = UINT32_MAX;
};

// The next row, which Recorder::Set() writes without a call. For the library only.
struct OpenRow {
  double* values = nullptr;
  uint32_t metric_count = 0;
};

}  // namespace tacho::client
