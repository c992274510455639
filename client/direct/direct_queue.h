// The queue from the trainer's thread to the sender's. Internal to client/direct.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/ring/ring_format.h"

namespace tacho::client {

struct DirectMetric {
  std::string name;
  MetricType type = MetricType::kGauge;
  std::string unit;
  std::string help;
};

struct DirectHistogram {
  std::string name;
  std::string unit;
  std::string help;
  std::vector<double> bounds;
};

// Consecutive rows with the same columns: the first `metric_count` metrics.
struct DirectRows {
  uint32_t metric_count = 0;
  bool has_steps = false;
  std::vector<int64_t> times_unix_ns;
  std::vector<int64_t> steps;  // One a row, or none.
  std::vector<double> values;
};

struct DirectHistogramState {
  uint32_t histogram = 0;
  int64_t time_unix_ns = 0;
  std::optional<int64_t> step;
  double sum = 0;
  std::vector<uint64_t> counts;
};

struct DirectEvent {
  int64_t time_unix_ns = 0;
  std::optional<int64_t> step;
  std::string kind;
  std::string message;
  std::map<std::string, std::string> fields;
};

using DirectItem = std::variant<DirectRows, DirectHistogramState, DirectEvent>;

// One portion of work for the sender.
struct DirectWork {
  std::vector<DirectMetric> metrics;        // New ones, to append to those it has.
  std::vector<DirectHistogram> histograms;  // The same.
  std::map<std::string, std::string> attributes;
  std::optional<DirectItem> item;
  uint64_t lost_rows = 0;  // Dropped before `item`, since the previous work.
  uint64_t lost_events = 0;
  bool closed = false;  // Closed, and nothing is left.
};

// Thread-safe. May throw std::bad_alloc.
class DirectQueue {
 public:
  // Rows of one item. Few, so that dropping the oldest item loses little.
  static constexpr size_t kMaxRowsPerItem = 256;
  static constexpr uint64_t kMinBytes = uint64_t{64} * 1024;

  explicit DirectQueue(uint64_t max_bytes);

  void AddMetric(DirectMetric metric) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddHistogram(DirectHistogram histogram) ABSL_LOCKS_EXCLUDED(mutex_);
  // False if all keys and values so far would take more room than in a ring.
  bool AddAttribute(std::string_view key, std::string_view value) ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops the oldest items if there is no room.
  void AddRow(int64_t time_unix_ns, std::optional<int64_t> step, std::span<const double> values)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(DirectHistogramState state) ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(DirectEvent event) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ignores everything that comes later.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for work, then up to `linger` for more rows that can share a message.
  DirectWork Take(absl::Duration linger) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Push(DirectItem item, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool SomethingToDo() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EnoughToDo() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Entry {
    DirectItem item;
    uint64_t bytes = 0;
  };

  const uint64_t max_bytes_;
  absl::Mutex mutex_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lost_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lost_events_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<DirectMetric> new_metrics_ ABSL_GUARDED_BY(mutex_);
  std::vector<DirectHistogram> new_histograms_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> new_attributes_ ABSL_GUARDED_BY(mutex_);
  uint64_t attribute_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tacho::client
