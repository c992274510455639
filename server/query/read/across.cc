// Folds series into places. Series mostly have samples at the same places in the same order, so the
// place after the last one is tried before the hash map.
#include "server/query/read/across.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"

namespace tacho::server::query {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool IsQuantile(v1::AggregateFunction function) {
  return function == v1::AGGREGATE_FUNCTION_P50 || function == v1::AGGREGATE_FUNCTION_P90 ||
         function == v1::AGGREGATE_FUNCTION_P99 || function == v1::AGGREGATE_FUNCTION_QUANTILE;
}

bool SkipsNan(v1::AggregateFunction function) {
  return IsQuantile(function) || function == v1::AGGREGATE_FUNCTION_MIN ||
         function == v1::AGGREGATE_FUNCTION_MAX;
}

double Quantile(const FoldOptions& options) {
  if (options.function == v1::AGGREGATE_FUNCTION_P50) return 0.5;
  if (options.function == v1::AGGREGATE_FUNCTION_P90) return 0.9;
  if (options.function == v1::AGGREGATE_FUNCTION_P99) return 0.99;
  return options.quantile;
}

// The average or the sum with infinities; of both signs it is NaN.
double MeanOrSum(const Bucket& bucket, bool sum) {
  if (bucket.positive_infinite > 0 && bucket.negative_infinite > 0) return kNan;
  if (bucket.positive_infinite > 0) return kInfinity;
  if (bucket.negative_infinite > 0) return -kInfinity;
  if (!sum || bucket.finite == 0) return bucket.Average();
  return static_cast<double>(bucket.sum);
}

double Lowest(const Bucket& bucket) {
  if (bucket.negative_infinite > 0) return -kInfinity;
  if (bucket.finite > 0) return bucket.min;
  return bucket.positive_infinite > 0 ? kInfinity : kNan;
}

double Highest(const Bucket& bucket) {
  if (bucket.positive_infinite > 0) return kInfinity;
  if (bucket.finite > 0) return bucket.max;
  return bucket.negative_infinite > 0 ? -kInfinity : kNan;
}

// As EntryOf() of a bucket that has these samples alone.
double EntryOfFinite(const FiniteValues& values, size_t count, const FoldOptions& options) {
  if (options.enter_sums) return static_cast<double>(values.sum);
  if (options.function == v1::AGGREGATE_FUNCTION_MIN) return values.min;
  if (options.function == v1::AGGREGATE_FUNCTION_MAX) return values.max;
  return static_cast<double>(values.sum / static_cast<long double>(count));
}

int64_t EarlierStep(int64_t a, int64_t b) {
  if (a == storage::kNoStep) return b;
  return b == storage::kNoStep ? a : std::min(a, b);
}

absl::Status TooManyPlaces() {
  return absl::ResourceExhaustedError(
      absl::StrCat("an aggregate has more than ", kMaxPlaces,
                   " steps: give a range of steps, or use the axis of time with max_points"));
}

absl::Status TooManyValues() {
  return absl::ResourceExhaustedError(
      absl::StrCat("a quantile would hold more than ", kMaxHeldValues,
                   " values at once: give a shorter range, keep labels apart with aggregation.by, "
                   "or use AVG, MIN or MAX, which hold none"));
}

std::vector<Bucket> StepsInGrid(const std::vector<FoldedPlace>& places, const BucketGrid& grid) {
  Reducer reducer(grid, /*by_step=*/true);
  for (const FoldedPlace& place : places) {
    const Sample sample{place.last_time_ns, place.position, place.attempt, place.value};
    Bucket& bucket = reducer.BucketOf(sample);
    const uint64_t count = bucket.count + place.count;
    const uint64_t non_finite = bucket.non_finite + place.non_finite;
    bucket.Add(sample, /*by_step=*/true);
    bucket.count = count;
    bucket.non_finite = non_finite;
  }
  return reducer.Take();
}

}  // namespace

double EntryOf(const Bucket& bucket, const FoldOptions& options) {
  if (!options.enter_sums && options.function == v1::AGGREGATE_FUNCTION_MIN) return Lowest(bucket);
  if (!options.enter_sums && options.function == v1::AGGREGATE_FUNCTION_MAX) return Highest(bucket);
  if (bucket.nan > 0 && !SkipsNan(options.function)) return kNan;
  return MeanOrSum(bucket, options.enter_sums);
}

// Inlined, so that a piece is never put together in memory.
inline __attribute__((always_inline)) absl::Status Fold::Enter(const FoldedPlace& piece,
                                                               double value) {
  // Series mostly meet in the same places in the same order.
  ++newest_;
  bool added = false;
  if (newest_ >= places_.size() || places_[newest_].folded.position != piece.position) {
    const auto found =
        by_position_.try_emplace(piece.position, static_cast<uint32_t>(places_.size()));
    newest_ = found.first->second;
    added = found.second;
  }
  if (added) {
    if (places_.size() == kMaxPlaces) return TooManyPlaces();
    places_.emplace_back().folded = piece;
  } else {
    FoldedPlace& folded = places_[newest_].folded;
    folded.first_time_ns = std::min(folded.first_time_ns, piece.first_time_ns);
    folded.last_time_ns = std::max(folded.last_time_ns, piece.last_time_ns);
    folded.first_step = EarlierStep(folded.first_step, piece.first_step);
    folded.last_step = std::max(folded.last_step, piece.last_step);
    folded.attempt = std::max(folded.attempt, piece.attempt);
    folded.count += piece.count;
    folded.non_finite += piece.non_finite;
    folded.lowest = Lower(folded.lowest, piece.lowest);
    folded.highest = Higher(folded.highest, piece.highest);
  }
  if (std::isnan(value) && SkipsNan(options_.function)) return absl::OkStatus();
  if (!IsQuantile(options_.function)) {
    Update(&places_[newest_], value);
    return absl::OkStatus();
  }
  if (held_.size() == kMaxHeldValues) return TooManyValues();
  held_.push_back({newest_, value});
  return absl::OkStatus();
}

absl::Status Fold::AddAtStep(const Sample& sample) {
  const bool finite = std::isfinite(sample.value);
  return Enter({.position = sample.step,
                .first_time_ns = sample.time_ns,
                .last_time_ns = sample.time_ns,
                .first_step = sample.step,
                .last_step = sample.step,
                .attempt = sample.attempt,
                .count = 1,
                .non_finite = finite ? uint64_t{0} : uint64_t{1},
                .lowest = finite ? sample.value : kNan,
                .highest = finite ? sample.value : kNan},
               sample.value);
}

absl::Status Fold::AddBucket(const Bucket& bucket) {
  TACHO_CHECK(bucket.count > 0);
  return Enter({.position = bucket.index,
                .first_time_ns = bucket.first_time_ns,
                .last_time_ns = bucket.last_time_ns,
                .first_step = bucket.first_step,
                .last_step = bucket.last_step,
                .count = bucket.count,
                .non_finite = bucket.non_finite,
                .lowest = bucket.min,
                .highest = bucket.max},
               EntryOf(bucket, options_));
}

absl::Status Fold::AddRun(uint32_t index, const storage::SampleColumns& columns, size_t begin,
                          size_t end) {
  TACHO_CHECK(begin < end && end <= columns.size());
  FiniteValues values;
  if (!values.Take(columns.values.subspan(begin, end - begin))) {
    Bucket bucket{.index = index};
    bucket.AddByTime(columns, begin, end);
    return AddBucket(bucket);
  }
  return Enter({.position = index,
                .first_time_ns = columns.times[begin],
                .last_time_ns = columns.times[end - 1],
                .first_step = columns.steps[begin],
                .last_step = columns.steps[end - 1],
                .count = end - begin,
                .lowest = values.min,
                .highest = values.max},
               EntryOfFinite(values, end - begin, options_));
}

void Fold::Update(Place* place, double value) const {
  ++place->entered;
  switch (options_.function) {
    case v1::AGGREGATE_FUNCTION_MIN:
      place->extreme = place->entered == 1 ? value : std::min(place->extreme, value);
      break;
    case v1::AGGREGATE_FUNCTION_MAX:
      place->extreme = place->entered == 1 ? value : std::max(place->extreme, value);
      break;
    case v1::AGGREGATE_FUNCTION_STDDEV: {
      const long double delta = value - place->mean;
      place->mean += delta / static_cast<long double>(place->entered);
      place->squares += delta * (value - place->mean);
      break;
    }
    default:
      place->sum += value;
  }
}

double Fold::Result(const Place& place) const {
  const auto entered = static_cast<long double>(place.entered);
  switch (options_.function) {
    case v1::AGGREGATE_FUNCTION_COUNT:
      return static_cast<double>(place.entered);
    case v1::AGGREGATE_FUNCTION_MIN:
    case v1::AGGREGATE_FUNCTION_MAX:
      return place.entered == 0 ? kNan : place.extreme;
    case v1::AGGREGATE_FUNCTION_SUM:
      return static_cast<double>(place.sum);
    case v1::AGGREGATE_FUNCTION_AVG:
      return static_cast<double>(place.sum / entered);
    case v1::AGGREGATE_FUNCTION_STDDEV:
      return static_cast<double>(std::sqrt(place.squares / entered));
    default:
      return kNan;  // Quantiles come from the values held.
  }
}

void Fold::SetQuantiles() {
  std::sort(held_.begin(), held_.end(), [](const Held& a, const Held& b) {
    return a.place != b.place ? a.place < b.place : a.value < b.value;
  });
  std::vector<double> values;
  for (size_t i = 0; i < held_.size();) {
    const uint32_t place = held_[i].place;
    values.clear();
    for (; i < held_.size() && held_[i].place == place; ++i) values.push_back(held_[i].value);
    places_[place].folded.value = QuantileOfSorted(values, Quantile(options_));
  }
  held_.clear();
}

std::vector<FoldedPlace> Fold::Take() {
  for (Place& place : places_) place.folded.value = Result(place);
  if (IsQuantile(options_.function)) SetQuantiles();
  std::vector<FoldedPlace> taken;
  taken.reserve(places_.size());
  for (const Place& place : places_) taken.push_back(place.folded);
  std::sort(taken.begin(), taken.end(),
            [](const FoldedPlace& a, const FoldedPlace& b) { return a.position < b.position; });
  places_.clear();
  by_position_.clear();
  newest_ = 0;
  return taken;
}

void FoldByTime::Enter(const absl::Status& entered) {
  if (!entered.ok() && status_.ok()) status_ = entered;
}

void FoldByTime::GoOnTo(int64_t time_ns) {
  if (bucket_.count > 0 && time_ns <= last_ns_) return;
  uint32_t index = 0;
  if (bucket_.count == 0) {
    index = grid_.IndexOf(time_ns);
  } else {
    TACHO_CHECK(time_ns >= bucket_.last_time_ns);  // A series ascends in time.
    index = grid_.IndexAfter(bucket_.index, time_ns);
    Enter(fold_->AddBucket(bucket_));
  }
  bucket_ = Bucket{.index = index};
  last_ns_ = grid_.LastOf(index);
}

void FoldByTime::Add(const storage::SampleColumns& columns) {
  const std::span<const int64_t> times = columns.times;
  const auto end_of = [times](size_t i, int64_t last_ns) {
    while (i < times.size() && times[i] <= last_ns) ++i;
    return i;
  };
  if (times.empty()) return;
  GoOnTo(times.front());
  uint32_t index = bucket_.index;
  int64_t last_ns = last_ns_;
  size_t end = end_of(0, last_ns);
  bucket_.AddByTime(columns, 0, end);
  if (end == times.size()) return;
  Enter(fold_->AddBucket(bucket_));
  // Buckets that begin and end here need not be held.
  for (;;) {
    const size_t begin = end;
    index = grid_.IndexAfter(index, times[begin]);
    last_ns = grid_.LastOf(index);
    end = end_of(begin, last_ns);
    if (end == times.size()) {
      bucket_ = Bucket{.index = index};
      bucket_.AddByTime(columns, begin, end);
      last_ns_ = last_ns;
      return;
    }
    Enter(fold_->AddRun(index, columns, begin, end));
  }
}

void FoldByTime::AddByTime(const storage::SampleSummary& summary) {
  GoOnTo(summary.first_time_ns);
  bucket_.AddByTime(summary);
}

absl::Status FoldByTime::EndSeries() {
  if (bucket_.count > 0) Enter(fold_->AddBucket(bucket_));
  bucket_ = {};
  return status_;
}

ReducedSeries ReduceSteps(const std::vector<FoldedPlace>& places, uint32_t max_buckets) {
  if (places.empty()) return {};
  const AxisExtent extent{places.front().position, places.back().position};
  auto reduced =
      ReduceWithoutGaps(extent, max_buckets, /*by_step=*/true,
                        [&](const BucketGrid& grid) -> absl::StatusOr<std::vector<Bucket>> {
                          return StepsInGrid(places, grid);
                        });
  return *std::move(reduced);  // Nothing here can fail.
}

std::vector<Bucket> AsBuckets(const std::vector<FoldedPlace>& places) {
  std::vector<Bucket> buckets;
  buckets.reserve(places.size());
  for (const FoldedPlace& place : places) {
    Bucket& bucket = buckets.emplace_back();
    bucket.index = static_cast<uint32_t>(place.position);
    bucket.first_time_ns = place.first_time_ns;
    bucket.last_time_ns = place.last_time_ns;
    bucket.first_step = place.first_step;
    bucket.last_step = place.last_step;
    bucket.min = bucket.max = bucket.first = bucket.last = place.value;
    bucket.sum = place.value;
    bucket.finite = 1;
    bucket.count = place.count;
    bucket.non_finite = place.non_finite;
  }
  return buckets;
}

}  // namespace tacho::server::query
