// Puts samples into buckets run by run: samples of one bucket follow each other, so that the bucket
// is looked up once a run, and a run's values are added without a branch on each.
#include "server/query/read/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "proto/base/check.h"

namespace tacho::server::query {
namespace {

// Unsigned, so that the extent of all of int64 fits.
uint64_t LengthOf(const AxisExtent& extent) {
  return static_cast<uint64_t>(extent.last) - static_cast<uint64_t>(extent.first);
}

bool Fits(std::span<const AxisExtent> stretches, uint64_t width, uint32_t max_buckets) {
  uint64_t buckets = 0;
  for (const AxisExtent& stretch : stretches) {
    const uint64_t more = LengthOf(stretch) / width;
    if (more >= max_buckets) return false;
    buckets += more + 1;
  }
  return buckets <= max_buckets;
}

// The smallest that fits.
uint64_t WidthFor(std::span<const AxisExtent> stretches, uint32_t max_buckets) {
  if (max_buckets <= 1) return 0;
  const uint64_t all = LengthOf({stretches.front().first, stretches.back().last});
  uint64_t fits = all / max_buckets + 1;
  // One stretch fits so at best. Several do because no stretch begins before the bucket that its
  // predecessor ends in.
  if (stretches.size() == 1) return fits;
  uint64_t too_small = 0;
  if (!Fits(stretches, fits, max_buckets)) fits = all == UINT64_MAX ? all : all + 1;
  while (fits - too_small > 1) {
    const uint64_t middle = too_small + (fits - too_small) / 2;
    (Fits(stretches, middle, max_buckets) ? fits : too_small) = middle;
  }
  return fits;
}

}  // namespace

BucketGrid::BucketGrid(std::span<const AxisExtent> stretches, uint32_t max_buckets,
                       uint64_t min_width) {
  TACHO_CHECK(!stretches.empty() && stretches.size() <= std::max(max_buckets, uint32_t{1}));
  width_ = WidthFor(stretches, max_buckets);
  if (width_ == 0) stretches_.push_back({stretches.front().first, stretches.back().last, 0});
  if (width_ == 0) return;
  width_ = std::max(width_, min_width);
  buckets_ = 0;
  for (const AxisExtent& stretch : stretches) {
    TACHO_CHECK(!stretch.empty());
    TACHO_CHECK(stretches_.empty() || stretches_.back().last < stretch.first);
    stretches_.push_back({stretch.first, stretch.last, buckets_});
    buckets_ += static_cast<uint32_t>(LengthOf(stretch) / width_) + 1;
  }
}

const BucketGrid::Stretch& BucketGrid::StretchOf(uint32_t index) const {
  if (stretches_.size() == 1) return stretches_.front();
  const auto after =
      std::upper_bound(stretches_.begin(), stretches_.end(), index,
                       [](uint32_t i, const Stretch& stretch) { return i < stretch.index; });
  return *(after - 1);  // The first stretch has index 0.
}

bool BucketGrid::BeginsStretch(uint32_t index) const { return StretchOf(index).index == index; }

int64_t BucketGrid::LastOf(uint32_t index) const {
  if (index + 1 >= buckets_) return std::numeric_limits<int64_t>::max();
  const Stretch& stretch = StretchOf(index);
  const Stretch& next = StretchOf(index + 1);
  if (&next != &stretch) return next.first - 1;
  const uint64_t buckets = uint64_t{index} - stretch.index + 1;
  return static_cast<int64_t>(static_cast<uint64_t>(stretch.first) + buckets * width_ - 1);
}

uint32_t BucketGrid::IndexOf(int64_t position) const {
  const Stretch* stretch = &stretches_.front();
  if (stretches_.size() > 1) {
    const auto after =
        std::upper_bound(stretches_.begin(), stretches_.end(), position,
                         [](int64_t at, const Stretch& one) { return at < one.first; });
    TACHO_CHECK(after != stretches_.begin());
    stretch = &*(after - 1);
  }
  TACHO_CHECK(stretch->first <= position && position <= stretch->last);
  if (width_ == 0) return 0;
  return stretch->index + static_cast<uint32_t>(LengthOf({stretch->first, position}) / width_);
}

std::vector<AxisExtent> StretchesOf(const BucketGrid& grid, std::span<const Bucket> buckets,
                                    bool by_step) {
  std::vector<AxisExtent> stretches;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const Bucket& bucket = buckets[i];
    const bool begins =
        i == 0 || bucket.index > buckets[i - 1].index + 1 || grid.BeginsStretch(bucket.index);
    if (begins) stretches.emplace_back();
    stretches.back().Include(by_step ? bucket.first_step : bucket.first_time_ns);
    stretches.back().Include(by_step ? bucket.last_step : bucket.last_time_ns);
  }
  return stretches;
}

bool WastesBuckets(std::span<const Bucket> buckets, uint32_t max_buckets) {
  uint64_t samples = 0;
  for (const Bucket& bucket : buckets) samples += bucket.count;
  const uint64_t possible = std::min<uint64_t>(samples, max_buckets);
  return buckets.size() * 8 < possible * 7;
}

void Bucket::AddValue(double value) {
  if (std::isfinite(value)) [[likely]] {
    min = finite == 0 ? value : std::min(min, value);
    max = finite == 0 ? value : std::max(max, value);
    sum += value;
    ++finite;
  } else if (std::isnan(value)) {
    ++nan;
  } else {
    ++(value > 0 ? positive_infinite : negative_infinite);
  }
}

void Bucket::Add(const Sample& sample, bool by_step) {
  if (count == 0 || (by_step && sample.step < first_step)) {
    first_time_ns = sample.time_ns;
    first_step = sample.step;
    first = sample.value;
  }
  if (count == 0 || !by_step || sample.step >= last_step) {
    last_time_ns = sample.time_ns;
    last_step = sample.step;
    last = sample.value;
  }
  ++count;
  if (!std::isfinite(sample.value)) ++non_finite;
  AddValue(sample.value);
}

void Bucket::AddByTime(const storage::SampleSummary& summary) {
  TACHO_CHECK(summary.count > 0);
  if (count == 0) {
    first_time_ns = summary.first_time_ns;
    first_step = summary.first_step;
    first = summary.first;
  }
  last_time_ns = summary.last_time_ns;
  last_step = summary.last_step;
  last = summary.last;
  min = finite == 0 ? summary.min : std::min(min, summary.min);
  max = finite == 0 ? summary.max : std::max(max, summary.max);
  sum += summary.sum;
  finite += summary.count;
  count += summary.count;
}

void Bucket::AddByTime(const storage::SampleColumns& columns, size_t begin, size_t end) {
  TACHO_CHECK(begin < end && end <= columns.size());
  if (count == 0) {
    first_time_ns = columns.times[begin];
    first_step = columns.steps[begin];
    first = columns.values[begin];
  }
  last_time_ns = columns.times[end - 1];
  last_step = columns.steps[end - 1];
  last = columns.values[end - 1];
  count += end - begin;
  const std::span<const double> values = columns.values.subspan(begin, end - begin);
  FiniteValues usual;
  if (!usual.Take(values)) {
    for (const double value : values) {
      if (!std::isfinite(value)) ++non_finite;
      AddValue(value);
    }
    return;
  }
  min = finite == 0 ? usual.min : std::min(min, usual.min);
  max = finite == 0 ? usual.max : std::max(max, usual.max);
  sum += usual.sum;
  finite += values.size();
}

double Bucket::Average() const {
  if (finite == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(sum / static_cast<long double>(finite));
}

Bucket& Reducer::BucketOf(const Sample& sample) {
  return BucketAt(grid_.IndexOf(by_step_ ? sample.step : sample.time_ns));
}

Bucket& Reducer::BucketAt(uint32_t index) {
  if (newest_ < buckets_.size() && buckets_[newest_].index == index) return buckets_[newest_];
  if (in_order_) {
    if (buckets_.empty() || index > buckets_.back().index) {
      newest_ = buckets_.size();
      buckets_.emplace_back().index = index;
      return buckets_.back();
    }
    in_order_ = false;
    for (size_t i = 0; i < buckets_.size(); ++i) places_[buckets_[i].index] = i;
  }
  const auto [it, added] = places_.try_emplace(index, buckets_.size());
  if (added) buckets_.emplace_back().index = index;
  newest_ = it->second;
  return buckets_[newest_];
}

void Reducer::Add(const storage::SampleColumns& columns) {
  if (!by_step_) return AddByTime(columns);
  for (size_t i = 0; i < columns.size();) {
    // Which bucket follows is not known along steps.
    const int64_t step = columns.steps[i];
    Bucket& bucket = BucketAt(grid_.IndexOf(step));
    do {
      bucket.Add({.time_ns = columns.times[i], .step = step, .value = columns.values[i]}, by_step_);
      ++i;
    } while (i < columns.size() && columns.steps[i] == step);
  }
}

void Reducer::AddByTime(const storage::SampleColumns& columns) {
  const std::span<const int64_t> times = columns.times;
  uint32_t index = 0;
  for (size_t i = 0; i < times.size();) {
    index = i == 0 ? grid_.IndexOf(times[i]) : grid_.IndexAfter(index, times[i]);
    const int64_t last = grid_.LastOf(index);
    const size_t begin = i;
    while (i < times.size() && times[i] <= last) ++i;
    BucketAt(index).AddByTime(columns, begin, i);
  }
}

std::vector<Bucket> Reducer::Take() {
  std::vector<Bucket> taken;
  taken.swap(buckets_);
  places_.clear();
  if (!std::exchange(in_order_, true))
    std::sort(taken.begin(), taken.end(),
              [](const Bucket& a, const Bucket& b) { return a.index < b.index; });
  return taken;
}

}  // namespace tacho::server::query
