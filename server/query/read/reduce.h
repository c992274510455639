// Reduces a series to at most N buckets of equal width. A bucket keeps what a plot must not lose:
// the extremes, both ends, and whether a value was not finite. Long gaps take no buckets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "proto/base/check.h"
#include "server/query/read/sample.h"

namespace tacho::server::query {

// As std::fmin() and std::fmax(), which are calls: a NaN is skipped.
inline double Lower(double a, double b) { return a < b || std::isnan(b) ? a : b; }
inline double Higher(double a, double b) { return a > b || std::isnan(b) ? a : b; }

// The extremes and the sum of values that are all finite.
struct FiniteValues {
  double min = 0;
  double max = 0;
  long double sum = 0;

  // `values` are not empty. False if one is not finite: *this then means nothing.
  bool Take(std::span<const double> values);
};

// Divides one or several stretches of an axis into at most `max_buckets` (at least 1) buckets of
// equal width, a whole number. Each stretch begins with a bucket of its own.
class BucketGrid {
 public:
  BucketGrid(const AxisExtent& extent, uint32_t max_buckets)
      : BucketGrid(std::span(&extent, 1), max_buckets) {}
  // `stretches` ascend and are disjoint; there are at most `max_buckets`, and at least one. Buckets
  // are at least `min_width` wide.
  BucketGrid(std::span<const AxisExtent> stretches, uint32_t max_buckets, uint64_t min_width = 1);

  // `position` lies in a stretch, which is checked.
  uint32_t IndexOf(int64_t position) const;
  // The same for a position after bucket `index`, which is mostly in the next bucket.
  uint32_t IndexAfter(uint32_t index, int64_t position) const {
    if (width_ == 0) return 0;
    return position <= LastOf(index + 1) ? index + 1 : IndexOf(position);
  }
  // The last position of a bucket, or the highest of all. After the last bucket of a stretch comes
  // the first of the next one.
  int64_t LastOf(uint32_t index) const;
  // Whether a stretch begins with this bucket.
  bool BeginsStretch(uint32_t index) const;
  // 0: everything is one bucket.
  uint64_t width() const { return width_; }

 private:
  struct Stretch {
    int64_t first = 0;
    int64_t last = 0;
    uint32_t index = 0;  // That of its first bucket.
  };
  const Stretch& StretchOf(uint32_t index) const;

  std::vector<Stretch> stretches_;
  uint64_t width_ = 0;
  uint32_t buckets_ = 1;
};

struct Bucket {
  uint32_t index = 0;
  // Places of the first and the last sample along the axis.
  int64_t first_time_ns = 0;
  int64_t last_time_ns = 0;
  int64_t first_step = storage::kNoStep;
  int64_t last_step = storage::kNoStep;
  double first = 0;
  double last = 0;
  // Over finite values; without any, the extremes are NaN and the sum is 0. The sum is a long
  // double so that adding doubles cannot overflow it where that type has a longer exponent.
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  long double sum = 0;
  uint64_t finite = 0;
  uint64_t nan = 0;
  uint64_t positive_infinite = 0;
  uint64_t negative_infinite = 0;
  // Samples, and how many of them are NaN or infinite. In a bucket of folded values: the samples
  // that went into those values.
  uint64_t count = 0;
  uint64_t non_finite = 0;

  // `by_step`: the axis. Samples come in ascending time.
  void Add(const Sample& sample, bool by_step);
  // All samples of a summary at once, along the axis of time.
  void AddByTime(const storage::SampleSummary& summary);
  // Samples [begin, end) of the columns, at least one, along the axis of time.
  void AddByTime(const storage::SampleColumns& columns, size_t begin, size_t end);
  void AddValue(double value);
  double Average() const;  // Over finite values; NaN if there is none.
};

// Not thread-safe.
class Reducer {
 public:
  Reducer(const BucketGrid& grid, bool by_step) : grid_(grid), by_step_(by_step) {}

  // Makes room for this many buckets.
  void Reserve(size_t buckets) { buckets_.reserve(buckets); }
  // Adds the series' next chunk. A summary lies in one bucket of time.
  void Add(const storage::Chunk& chunk) {
    if (chunk.is_summary()) return AddByTime(chunk.summary());
    Add(chunk.samples().columns);
  }
  void Add(const storage::SampleColumns& columns);
  void AddByTime(const storage::SampleSummary& summary) {
    TACHO_CHECK(!by_step_);
    BucketAt(grid_.IndexOf(summary.first_time_ns)).AddByTime(summary);
  }
  // The bucket of this sample's position. Valid until the next call.
  Bucket& BucketOf(const Sample& sample);

  // Those with samples, ascending. The reducer is empty afterwards.
  std::vector<Bucket> Take();

 private:
  Bucket& BucketAt(uint32_t index);
  void AddByTime(const storage::SampleColumns& columns);

  const BucketGrid grid_;
  const bool by_step_;
  std::vector<Bucket> buckets_;                   // In the order in which they were met.
  bool in_order_ = true;                          // They ascend: positions mostly do.
  absl::flat_hash_map<uint32_t, size_t> places_;  // By index, once they do not.
  size_t newest_ = 0;  // Place of the bucket that was used last: mostly the next as well.
};

// The stretches of the axis that have samples, by the buckets of a grid, which ascend: where the
// grid has an empty bucket, one ends and another begins. As many as there are in the grid, if no
// bucket is empty.
std::vector<AxisExtent> StretchesOf(const BucketGrid& grid, std::span<const Bucket> buckets,
                                    bool by_step);
// Whether more than an eighth of the buckets that could have a sample have none.
bool WastesBuckets(std::span<const Bucket> buckets, uint32_t max_buckets);

struct ReducedSeries {
  std::vector<Bucket> buckets;
  uint64_t width = 0;  // As BucketGrid::width().
};

// How often samples are read at most to find gaps within stretches that seemed to have none.
inline constexpr int kMostReductions = 4;

// Reduces samples in `extent`, which is not empty, so that gaps take no buckets.
// reduce(const BucketGrid&) makes the buckets of a grid: absl::StatusOr<std::vector<Bucket>>.
template <typename Reduce>
absl::StatusOr<ReducedSeries> ReduceWithoutGaps(const AxisExtent& extent, uint32_t max_buckets,
                                                bool by_step, const Reduce& reduce) {
  std::vector<AxisExtent> stretches = {extent};
  for (int made = 1;; ++made) {
    const BucketGrid grid(stretches, max_buckets);
    absl::StatusOr<std::vector<Bucket>> buckets = reduce(grid);
    if (!buckets.ok()) return buckets.status();
    std::vector<AxisExtent> found = StretchesOf(grid, *buckets, by_step);
    if (made == kMostReductions || found.size() == stretches.size() ||
        !WastesBuckets(*buckets, max_buckets)) {
      return ReducedSeries{*std::move(buckets), grid.width()};
    }
    stretches = std::move(found);
  }
}

// Inline: most runs are of a few values.
inline bool FiniteValues::Take(std::span<const double> values) {
  TACHO_CHECK(!values.empty());
  // In registers and without a branch on values; of two lanes, as each addition takes as long as
  // several values could be looked at.
  double low[2] = {values.front(), values.front()};
  double high[2] = {values.front(), values.front()};
  long double total[2] = {};
  double zero[2] = {};  // Becomes NaN if a value is not finite.
  const auto take = [&](size_t lane, double value) {
    low[lane] = std::min(low[lane], value);
    high[lane] = std::max(high[lane], value);
    total[lane] += value;
    zero[lane] += value - value;
  };
  size_t i = 0;
  for (; i + 1 < values.size(); i += 2) {
    take(0, values[i]);
    take(1, values[i + 1]);
  }
  if (i < values.size()) take(0, values[i]);
  min = std::min(low[0], low[1]);
  max = std::max(high[0], high[1]);
  sum = total[0] + total[1];
  return zero[0] + zero[1] == 0;
}

}  // namespace tacho::server::query
