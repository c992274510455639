#include "server/query/range/shared_grid.h"

#include <utility>

#include "proto/base/status_macros.h"

namespace tacho::server::query {
namespace {

// Which buckets of a plain grid have samples, and where in them. Its memory is 16 bytes a bucket.
class Occupancy {
 public:
  explicit Occupancy(uint32_t max_points) : extents_(max_points) {}

  // The buckets of one series.
  void Add(const std::vector<Bucket>& buckets) {
    for (const Bucket& bucket : buckets) {
      AxisExtent& known = extents_[bucket.index];
      if (known.empty()) ++occupied_;
      known.Include(bucket.first_time_ns);
      known.Include(bucket.last_time_ns);
      intervals_ += bucket.count - 1;
      between_ns_ +=
          static_cast<uint64_t>(bucket.last_time_ns) - static_cast<uint64_t>(bucket.first_time_ns);
    }
  }

  bool WastesFew() const { return occupied_ * 8 >= extents_.size() * 7; }

  // From one sample of a series to the next; 0: no bucket has two of one series.
  uint64_t IntervalNs() const { return intervals_ == 0 ? 0 : between_ns_ / intervals_; }

  // Those between gaps that empty a bucket and are at least so many ns long.
  std::vector<AxisExtent> Stretches(uint64_t gap_ns) const {
    std::vector<AxisExtent> stretches;
    bool after_empty = true;
    for (const AxisExtent& extent : extents_) {
      if (!extent.empty()) {
        const bool begins = stretches.empty() ||
                            (after_empty && static_cast<uint64_t>(extent.first) -
                                                    static_cast<uint64_t>(stretches.back().last) >=
                                                gap_ns);
        if (begins) stretches.emplace_back();
        stretches.back().Include(extent.first);
        stretches.back().Include(extent.last);
      }
      after_empty = extent.empty();
    }
    return stretches;
  }

 private:
  std::vector<AxisExtent> extents_;  // By index; empty for buckets without samples.
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
  Occupancy occupancy(max_points);
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
