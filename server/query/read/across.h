// Many series as one: values that meet at a place along the axis become one value.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "server/query/read/reduce.h"
#include "server/query/read/sample.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// Places of one aggregate: 200 MB of them. More distinct steps are refused.
inline constexpr size_t kMaxPlaces = size_t{2} << 20;
// Values held for a quantile of one aggregate: 128 MiB of them.
inline constexpr size_t kMaxHeldValues = size_t{8} << 20;

struct FoldOptions {
  v1::AggregateFunction function = v1::AGGREGATE_FUNCTION_SUM;
  double quantile = 0;  // For QUANTILE: 0 to 1.
  // A series enters a time bucket with the sum of its samples: they are increases.
  bool enter_sums = false;
};

// The value with which a series enters a time bucket: its average, but for MIN its minimum and for
// MAX its maximum; with enter_sums always its sum. Infinities take part. For SUM, AVG and STDDEV a
// NaN makes the value NaN; the others skip it. NaN if nothing is left.
double EntryOf(const Bucket& bucket, const FoldOptions& options);

// The result at one place.
struct FoldedPlace {
  int64_t position = 0;  // Step, or index of the bucket.
  // The earliest and the latest that met here; kNoStep if none had a step.
  int64_t first_time_ns = 0;
  int64_t last_time_ns = 0;
  int64_t first_step = storage::kNoStep;
  int64_t last_step = storage::kNoStep;
  uint32_t attempt = 0;     // The newest.
  uint64_t count = 0;       // Samples that went in.
  uint64_t non_finite = 0;  // How many of them are NaN or infinite.
  // Over the finite ones; NaN if there is none.
  double lowest = std::numeric_limits<double>::quiet_NaN();
  double highest = std::numeric_limits<double>::quiet_NaN();
  double value = 0;
};

// Not thread-safe.
//
//   SUM, AVG       as IEEE arithmetic has it: a NaN makes the result NaN
//   STDDEV         the population's, the same way
//   MIN, MAX, P…, QUANTILE
//                  NaN is skipped; NaN if nothing else was there
//   COUNT          series that meet here, whatever their values
class Fold {
 public:
  explicit Fold(const FoldOptions& options) : options_(options) {}

  // A sample of a series at its step. One series enters a step once.
  //   RESOURCE_EXHAUSTED  kMaxPlaces or kMaxHeldValues; the text says how to narrow.
  absl::Status AddAtStep(const Sample& sample);
  // A series' time bucket.
  absl::Status AddBucket(const Bucket& bucket);
  // A series' time bucket that holds samples [begin, end) and no others.
  absl::Status AddRun(uint32_t index, const storage::SampleColumns& columns, size_t begin,
                      size_t end);

  // By position, ascending. The fold is empty afterwards.
  std::vector<FoldedPlace> Take();

 private:
  struct Place {
    FoldedPlace folded;
    uint64_t entered = 0;  // Values that took part.
    long double sum = 0;   // Their sum. COUNT uses `entered` alone.
    double extreme = 0;
    long double mean = 0;  // Welford's, for STDDEV.
    long double squares = 0;
  };
  struct Held {
    uint32_t place = 0;
    double value = 0;
  };

  absl::Status Enter(const FoldedPlace& piece, double value);
  void Update(Place* place, double value) const;
  double Result(const Place& place) const;
  void SetQuantiles();

  const FoldOptions options_;
  std::vector<Place> places_;
  absl::flat_hash_map<int64_t, uint32_t> by_position_;
  uint32_t newest_ = 0;  // Place that was entered last.
  std::vector<Held> held_;
};

// Enters one series after the other into a fold, bucket by bucket of time. It holds nothing of a
// series but the current bucket. Not thread-safe.
class FoldByTime {
 public:
  // The fold is not owned.
  FoldByTime(const BucketGrid& grid, Fold* fold) : grid_(grid), fold_(fold) {}

  // Adds the series' next chunk, ascending in time. A summary lies in one bucket.
  void Add(const storage::Chunk& chunk) {
    if (chunk.is_summary()) return AddByTime(chunk.summary());
    Add(chunk.samples().columns);
  }
  void Add(const storage::SampleColumns& columns);
  void AddByTime(const storage::SampleSummary& summary);
  // After the last of a series. Statuses are those of Fold.
  absl::Status EndSeries();

 private:
  // Moves to the bucket of a time, which does not lie before the current one.
  void GoOnTo(int64_t time_ns);
  void Enter(const absl::Status& entered);

  const BucketGrid grid_;
  Fold* const fold_;
  Bucket bucket_;        // The current one; empty: none.
  int64_t last_ns_ = 0;  // The newest time in bucket_.
  absl::Status status_;  // The first that is not OK.
};

// Folded steps as buckets along the steps. Counts are of the samples that went in.
ReducedSeries ReduceSteps(const std::vector<FoldedPlace>& places, uint32_t max_buckets);
// Folded time buckets in the form of an answer: min, max, avg, first and last are all the value.
std::vector<Bucket> AsBuckets(const std::vector<FoldedPlace>& places);

}  // namespace tacho::server::query
