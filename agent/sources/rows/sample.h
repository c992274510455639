// The result of one look at a machine: series and their values.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// Short names for the tables of metrics.
inline constexpr v1::MetricType kGaugeType = v1::METRIC_TYPE_GAUGE;
inline constexpr v1::MetricType kCounterType = v1::METRIC_TYPE_COUNTER;

// A metric's definition. All of them are constants in a table beside the code that fills them.
// Units as docs/notation.md has them.
struct Metric {
  const char* name;
  v1::MetricType type;
  const char* unit;
  const char* help;
  const char* label = nullptr;  // The one label of its series, for Add() with a text.
};

// Names and values, in the order in which they are sent.
using Labels = std::vector<std::pair<std::string, std::string>>;

class Sample {
 public:
  struct Entry {
    const Metric* metric = nullptr;
    Labels labels;
    double value = 0;
    std::string key;  // Tells series apart: name and labels.
  };

  // Twice what sixteen chips need if libtpu reports everything. A machine with a device for each of
  // its containers, or a runtime that makes up labels, must not make a layout that collectors
  // refuse: series beyond the bound are left out and counted.
  static constexpr size_t kMaxSeries = 4096;

  // The first value of a series stays: a device that is listed twice is a mistake of the machine's.
  // The metric is not copied.
  void Add(const Metric& metric, double value) { Add(metric, Labels(), value); }
  void Add(const Metric& metric, absl::string_view label, double value);
  // A label without a value is left out: collectors refuse it.
  void Add(const Metric& metric, Labels labels, double value);

  const std::vector<Entry>& entries() const { return entries_; }
  size_t left_out() const { return left_out_; }

 private:
  std::vector<Entry> entries_;
  absl::flat_hash_set<std::string> keys_;
  size_t left_out_ = 0;
};

// The definition as layouts carry it.
v1::Layout::Series SeriesOf(const Metric& metric, const Labels& labels);
// Tells series apart by name and labels; type, unit and help do not.
std::string KeyOf(const v1::Layout::Series& series);

}  // namespace tacho::agent
