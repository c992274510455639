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

constexpr uint64_t kHighest = std::numeric_limits<int64_t>::max();

uint64_t WidthFor(const AxisExtent& extent, uint32_t max_buckets) {
  // Unsigned, so that the extent of all of int64 fits.
  const uint64_t span = static_cast<uint64_t>(extent.last) - static_cast<uint64_t>(extent.first);
  return max_buckets <= 1 ? 0 : span / max_buckets + 1;
}

}  // namespace

BucketGrid::BucketGrid(const AxisExtent& extent, uint32_t max_buckets)
    : first_(extent.first),
      last_(extent.last),
      width_(WidthFor(extent, max_buckets)),
      complete_(width_ == 0 ? 0 : (kHighest - static_cast<uint64_t>(first_)) / width_) {
  TACHO_CHECK(!extent.empty());
}

uint32_t BucketGrid::IndexOf(int64_t position) const {
  TACHO_CHECK(first_ <= position && position <= last_);
  if (width_ == 0) return 0;
  return static_cast<uint32_t>((static_cast<uint64_t>(position) - static_cast<uint64_t>(first_)) /
                               width_);
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
