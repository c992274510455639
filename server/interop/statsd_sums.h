// Adds up what StatsD sends between two flushes.
//
//   counter     NAME, the total since the series began, from 0 on
//   gauge       NAME, the value now
//   set         NAME, how many different texts came since the last flush
//   timer       NAME_count and NAME_sum, totals since the series began; and of those since the last
//               flush NAME with the label quantile, NAME_min and NAME_max
//
// Each flush has every series, so that one that nobody sends for a while does not look ended. One
// that nobody sends for the expiry ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/interop/formats/foreign_write.h"
#include "server/interop/formats/statsd_lines.h"

namespace tacho::server::interop {

struct StatsdSumsOptions {
  size_t max_series = 10'000;
  size_t max_bytes = size_t{64} << 20;  // Of memory, for all series.
  absl::Duration expiry = absl::Minutes(5);
  bool signed_gauges = true;  // A gauge with a sign changes the value by it.
};

// Thread-safe.
class StatsdSums {
 public:
  // Of a timer's values between two flushes, so many stand for all where quantiles are computed;
  // each value has the same chance to be one of them.
  static constexpr size_t kKeptValues = 1024;

  explicit StatsdSums(StatsdSumsOptions options) : options_(options) {}

  struct Added {
    uint64_t values = 0;
    uint64_t no_room = 0;     // Left out: another series, or another text of a set.
    uint64_t other_type = 0;  // Left out: the series has another type, until it ends.
  };
  // `now` is by a monotonic clock.
  Added Add(const std::vector<StatsdPoint>& points, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // What is to be stored now, at `now_ns`. It is taken to be stored: the next one begins anew.
  ForeignWrite Flush(absl::Time now, int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Series {
    StatsdPoint::Kind kind = StatsdPoint::Kind::kCounter;
    bool milliseconds = false;
    bool stored = false;  // In a flush before, so that its end is told.
    std::string name;
    std::string labels;
    absl::Time sent;
    double total = 0;  // Of a counter; a gauge's value; a timer's sum.
    double count = 0;  // Of a timer.
    // Since the last flush.
    uint64_t seen = 0;
    double min = 0;
    double max = 0;
    std::vector<double> kept;
    absl::flat_hash_set<std::string> members;
    size_t bytes = 0;  // What the series takes.
  };
  using SeriesPtr = std::unique_ptr<Series>;

  Series* Find(const StatsdPoint& point, uint64_t values, Added* added)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddTo(const StatsdPoint& point, Series* series, Added* added)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddTimed(double value, double weight, Series* series) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether there is room for so much more; if so, the series has it.
  bool Take(size_t bytes, Series* series) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The series' samples, or its ends.
  void Write(const Series& series, bool ends, int64_t now_ns, ForeignWrite* write)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginAnew(Series* series) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t Draw(uint64_t below) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StatsdSumsOptions options_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, SeriesPtr> series_ ABSL_GUARDED_BY(mutex_);
  // Gauges that name their time: by key, the time and the value.
  std::vector<std::pair<std::string, ForeignSample>> timed_ ABSL_GUARDED_BY(mutex_);
  size_t timed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t drawn_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace tacho::server::interop
