#include "server/query/range/shared_grid.h"

#include <algorithm>
#include <utility>

#include "proto/base/status_macros.h"

namespace tacho::server::query {
namespace {

// Which buckets of a grid have samples.
class Occupancy {
 public:
  Occupancy(const BucketGrid& grid, uint32_t max_points)
      : grid_(grid), max_points_(max_points), buckets_(max_points) {}

  // The buckets of one series.
  void Add(const std::vector<Bucket>& buckets) {
    for (const Bucket& bucket : buckets) {
      Bucket& known = buckets_[bucket.index];
      if (known.count == 0) {
        ++occupied_;
        known.index = bucket.index;
        known.first_time_ns = bucket.first_time_ns;
        known.last_time_ns = bucket.last_time_ns;
      }
      known.first_time_ns = std::min(known.first_time_ns, bucket.first_time_ns);
      known.last_time_ns = std::max(known.last_time_ns, bucket.last_time_ns);
      known.count += bucket.count;
      intervals_ += bucket.count - 1;
      between_ns_ +=
          static_cast<uint64_t>(bucket.last_time_ns) - static_cast<uint64_t>(bucket.first_time_ns);
    }
  }

  bool WastesFew() const { return occupied_ * 8 >= uint64_t{max_points_} * 7; }

  // From one sample of a series to the next; 0: no bucket has two of one series.
  uint64_t IntervalNs() const { return intervals_ == 0 ? 0 : between_ns_ / intervals_; }

  // Those between gaps of at least so many ns.
  std::vector<AxisExtent> Stretches(uint64_t gap_ns) const {
    std::vector<Bucket> occupied;
    for (const Bucket& bucket : buckets_) {
      if (bucket.count > 0) occupied.push_back(bucket);
    }
    std::vector<AxisExtent> cut;
    for (const AxisExtent& stretch : StretchesOf(grid_, occupied, /*by_step=*/false)) {
      const bool near =
          !cut.empty() &&
          static_cast<uint64_t>(stretch.first) - static_cast<uint64_t>(cut.back().last) < gap_ns;
      if (near) {
        cut.back().last = stretch.last;
      } else {
        cut.push_back(stretch);
      }
    }
    return cut;
  }

 private:
  const BucketGrid& grid_;
  const uint32_t max_points_;
  std::vector<Bucket> buckets_;  // By index; of those without samples the count is 0.
  size_t occupied_ = 0;
  uint64_t intervals_ = 0;
  uint64_t between_ns_ = 0;
};

}  // namespace

absl::StatusOr<BucketGrid> MakeSharedGrid(const RangeReader& reader,
                                          const std::vector<RangeOutput>& outputs,
                                          const AxisExtent& extent, uint32_t max_points) {
  BucketGrid plain(extent, max_points);
  if (max_points <= 1) return plain;
  Occupancy occupancy(plain, max_points);
  for (const RangeOutput& output : outputs) {
    for (const storage::SeriesPtr& series : output.members) {
      TACHO_ASSIGN_OR_RETURN(const auto buckets, reader.BucketsIn(series, output.attempt, plain));
      occupancy.Add(buckets);
      if (occupancy.WastesFew()) return plain;
    }
  }
  const uint64_t interval_ns = occupancy.IntervalNs();
  if (interval_ns == 0) return plain;
  const auto stretches = occupancy.Stretches(kIntervalsOfAGap * interval_ns);
  if (stretches.size() <= 1) return plain;
  return BucketGrid(stretches, max_points, kIntervalsOfABucket * interval_ns);
}

}  // namespace tacho::server::query
