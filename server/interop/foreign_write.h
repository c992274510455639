// One request of another tool after its bytes were read: series and their samples. Doors make it,
// Intake stores it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/model/series.h"

namespace tacho::server::interop {

struct ForeignSample {
  int64_t time_ns = 0;
  double value = 0;  // The stale marker: the series has ended, there is no value.
};

struct ForeignSeries {
  // The labels as SeriesKey writes them. Points into the request, or into ForeignWrite::texts.
  absl::string_view key;
  // Its samples are ForeignWrite::samples[first, first + count).
  uint32_t first = 0;
  uint32_t count = 0;
  // A native histogram makes several series, of which one stands for it where things are counted.
  enum class Part : uint8_t { kSample, kHistogram, kOfHistogram };
  Part part = Part::kSample;
  // What is known of its metric: an index into ForeignWrite::metrics; -1: nothing.
  int32_t metric = -1;
};

// What a request says of a metric. Its name is empty where the metric is that of a series.
struct ForeignMetric : storage::Metric {
  bool typed = false;  // Its type is told; else it is guessed from the name of each series.
};

struct ForeignWrite {
  std::vector<ForeignSeries> series;
  std::vector<ForeignSample> samples;
  std::vector<ForeignMetric> metrics;
  std::deque<std::string> texts;  // A deque, so that what keys point to stays where it is.
  uint64_t exemplars = 0;         // Left out.

  // Begins a series; its samples are those that are added next.
  void AddSeries(absl::string_view key, int32_t metric = -1,
                 ForeignSeries::Part part = ForeignSeries::Part::kSample) {
    series.push_back({.key = key,
                      .first = static_cast<uint32_t>(samples.size()),
                      .part = part,
                      .metric = metric});
  }
  void AddSample(int64_t time_ns, double value) {
    samples.push_back({time_ns, value});
    ++series.back().count;
  }
};

// Labels as bytes: what prometheus.TimeSeries has as its repeated field `labels`, so that the bytes
// of a remote write 1.0 request are a key as they are. Equal keys are the same series; a sender
// that writes its labels in another order has another key for the same series.
void AppendLabel(absl::string_view name, absl::string_view value, std::string* key);
//   INVALID_ARGUMENT  the bytes are no list of labels.
absl::StatusOr<storage::Labels> LabelsOfKey(absl::string_view key);

// `name` with _ for each character that the name of a label may not have; templates of the mapping
// find labels by this name.
std::string LabelNameOf(absl::string_view name);

// Milliseconds since the Unix epoch as nanoseconds; what does not fit is the nearest that does.
int64_t NanosFromMillis(int64_t ms);

}  // namespace tacho::server::interop
