// How often a task comes to a new step: the times between its rows with a new step, measured as the
// rows come. The points of a track cannot show it, because they are thinned out as a job gets
// older.
//
//   rows ─▶ Note(): the interval since the row before
//              up to a second ─────────────────────────────▶ counted
//              longer: waits for the events of phases ─▶ Settle() ─▶ counted, or left out
//
// The longest pauses of the newest day are kept, too: what is left of a long interval without the
// phases in it, because nothing explains that time.
//
// Memory is bounded: an interval is counted in a bucket whose bounds are a factor of 1.1 apart. The
// newest 512 to 1,024 intervals count, so that an older pace is forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"

namespace tacho::server::conditions {

// Equal intervals, or nearly so.
struct CountedInterval {
  double seconds = 0;  // The longest of them.
  uint32_t count = 0;
};

// How much of the time between two rows recorded phases took, such as a checkpoint:
// PhaseCover::CoveredNs().
using CoveredFn = absl::FunctionRef<int64_t(int64_t from_ns, int64_t to_ns)>;

// The time between two rows with a new step, without the phases in it.
struct Pause {
  int64_t end_ns = 0;  // The time of the later row.
  double seconds = 0;
};

// The rows of one source: a layout of the task, or a series that was read from the store.
class RowPace {
 public:
  static constexpr uint32_t kGeneration = 512;  // Intervals; the last whole one counts, too.
  static constexpr size_t kMaxWaiting = 64;     // Beyond this, the oldest interval counts at once.
  static constexpr size_t kMaxPauses = 3;       // The longest ones,
  static constexpr int64_t kPausesForNs = 86'400'000'000'000;  // of this time before the newest.

  // A row that is not newer than the last one, or has no higher step, makes no interval.
  void Note(int64_t time_ns, int64_t step);
  // Rows were missed: the next one makes no interval.
  void Break() { last_.reset(); }
  // Counts the intervals that ended up to then, but for those that are covered.
  void Settle(int64_t until_ns, CoveredFn covered);

  bool waits() const { return !waiting_.empty(); }
  uint32_t intervals() const { return newest_count_ + before_count_; }
  int64_t newest_ns() const { return newest_ns_; }
  // Pauses of more than a second, in no order.
  const std::vector<Pause>& pauses() const { return pauses_; }
  void AppendTo(std::vector<CountedInterval>* out) const;

 private:
  struct Bucket {
    uint16_t number = 0;
    uint16_t count = 0;
    float longest = 0;  // Seconds.
  };
  struct Row {
    int64_t time_ns = 0;
    int64_t step = 0;
  };
  struct Interval {
    int64_t from_ns = 0;
    int64_t to_ns = 0;
  };

  void Count(int64_t ns);
  void NotePause(const Pause& pause);

  std::optional<Row> last_;
  int64_t newest_ns_ = 0;
  std::vector<Bucket> newest_;  // In no order: there are few.
  std::vector<Bucket> before_;  // The generation before.
  uint32_t newest_count_ = 0;
  uint32_t before_count_ = 0;
  std::vector<Interval> waiting_;
  std::vector<Pause> pauses_;
};

// A task may have several layouts, of which some have rows at few steps. Its pace is that of the
// source with the most intervals. Not thread-safe.
class TaskPace {
 public:
  static constexpr size_t kMaxSources = 4;  // For more, the one that was quiet longest is dropped.
  static constexpr uint64_t kStored = 0;    // The source of rows that were read from the store.

  RowPace& Of(uint64_t source);
  // Takes the pace of a stored series, if it has more intervals than the one taken before.
  void TakeStored(RowPace pace);
  void Break();
  void Settle(int64_t until_ns, CoveredFn covered);
  bool waits() const;
  // nullptr: no interval is known.
  const RowPace* Best() const;
  // The pauses of the best one, those that were read from the store included.
  std::vector<Pause> Pauses() const;

 private:
  struct Source {
    uint64_t id = 0;
    RowPace pace;
  };
  std::vector<Source> sources_;
};

// The q-quantile (0 to 1) of intervals, in seconds, with the arithmetic of proto/base/quantile.h; 0
// if there are none.
double QuantileOf(std::vector<CountedInterval> intervals, double q);

}  // namespace tacho::server::conditions
