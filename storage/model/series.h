// The words of the data model: metrics, series, sources, layouts. Plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/base/stale_marker.h"

namespace tacho::storage {

// The step of a row that has none, among rows that have.
inline constexpr int64_t kNoStep = INT64_MIN;

enum class MetricType : uint8_t { kGauge = 1, kCounter = 2, kHistogram = 3 };

struct Metric {
  std::string name;
  MetricType type = MetricType::kGauge;
  std::string unit;
  std::string help;

  friend bool operator==(const Metric&, const Metric&) = default;
};

// (name, value) pairs, sorted by name, names unique.
using Labels = std::vector<std::pair<std::string, std::string>>;

// What all series of a layout have in common.
struct Source {
  std::string job;
  std::optional<uint32_t> task;
  uint32_t attempt = 0;
  std::string host;

  friend bool operator==(const Source&, const Source&) = default;
};

using SeriesId = uint64_t;  // From 1; never reused.
using LayoutId = uint64_t;  // From 1; never reused.
using JobId = uint32_t;     // From 1; never reused.
using MetricId = uint32_t;  // From 1; never reused. One name of one job.

// Columns of a layout at most.
inline constexpr size_t kMaxLayoutColumns = 1 << 20;

// What the series of one source have in common: one object for each (job, task, host).
struct SeriesSource {
  std::string job;
  std::optional<uint32_t> task;
  std::string host;
  uint32_t number = 0;  // Among the sources of its job in memory, from 0.
};

// The labels of a series, sorted by name: one object for each distinct set of a job. The strings
// lie in what owns the set.
struct LabelSet {
  using Label = std::pair<absl::string_view, absl::string_view>;

  uint32_t number = 0;  // Among the label sets of its job in memory, from 0.
  std::vector<Label> labels;

  // The value of a label; "" if it is not there.
  absl::string_view Find(absl::string_view name) const {
    const auto found = std::lower_bound(
        labels.begin(), labels.end(), name,
        [](const Label& label, absl::string_view wanted) { return label.first < wanted; });
    return found == labels.end() || found->first != name ? absl::string_view() : found->second;
  }
  size_t size() const { return labels.size(); }
  auto begin() const { return labels.begin(); }
  auto end() const { return labels.end(); }
};

// One series as the index knows it. Its identity is (job, metric name, task, host, labels): an
// attempt is no part of it, so a restarted task goes on with the same series.
//
// There may be millions, so a series owns nothing: what it points to, and the series itself, belong
// to the catalogue of its job. To keep one, keep a SeriesPtr or a LayoutPtr.
struct Series {
  SeriesId id = 0;
  JobId job_id = 0;
  MetricId metric_id = 0;
  const Metric* metric = nullptr;
  const SeriesSource* source = nullptr;
  const LabelSet* labels = nullptr;
};
using SeriesPtr = std::shared_ptr<const Series>;  // Keeps the job's catalogue alive.

// A column of a layout as its sender defines it.
struct SeriesDefinition {
  Metric metric;
  Labels labels;
};

// The ordered list of series that one source samples together.
struct LayoutDefinition {
  Source source;
  bool has_steps = false;
  std::vector<SeriesDefinition> series;
};

// A layout as the index knows it. The same definition always has the same id, so an agent that
// reconnects goes on where it was.
struct Layout {
  LayoutId id = 0;
  uint32_t attempt = 0;
  bool has_steps = false;
  std::vector<const Series*> series;  // One a column; all of the same source. Not empty.
};
using LayoutPtr = std::shared_ptr<const Layout>;  // Keeps the job's catalogue alive.

// What a layout has shown last since Open() (or in the journal that was found then). Its series
// need not share a row: one that is recorded every hundredth step has its newest value here all the
// same.
struct LatestRow {
  LayoutPtr layout;
  // Time and step of the newest row.
  int64_t time_ns = 0;
  int64_t step = kNoStep;
  absl::Time received;  // By StoreOptions::now, when the row was appended or recovered.
  // One a column: its newest value; the stale marker if no row has had one.
  std::span<const double> values;

  // The row that a column's newest value is from.
  struct Stamp {
    int64_t time_ns = 0;
    absl::Time received;
  };
  // Empty if all values are from the newest row; else for each column an index into `stamps`.
  std::span<const Stamp> stamps;
  std::span<const uint32_t> stamp_of;

  int64_t Time(size_t column) const {
    return stamp_of.empty() ? time_ns : stamps[stamp_of[column]].time_ns;
  }
  absl::Time Received(size_t column) const {
    return stamp_of.empty() ? received : stamps[stamp_of[column]].received;
  }
};

// From this time on a series has no newest value, though it had some before.
struct SeriesEnd {
  SeriesPtr series;
  int64_t time_ns = 0;
};

struct LatestSample {
  SeriesPtr series;
  int64_t time_ns = 0;
  int64_t step = kNoStep;
  uint32_t attempt = 0;
  double value = 0;
};

class Chunk;
// The last sample of a chunk, which has one.
LatestSample LastOf(const SeriesPtr& series, const Chunk& chunk);

// Rows as their sender holds them. values is row by row, times.size() × width of the layout.
// steps has one entry a row, or none if the layout has no steps.
struct RowsView {
  std::span<const int64_t> times;
  std::span<const int64_t> steps;
  std::span<const double> values;
};

}  // namespace tacho::storage
