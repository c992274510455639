// A RangeRequest, checked, with every default filled in, and the series that its answer has. The
// plan does not yet know the job's attempts: ChooseAttempts() in selection.h looks them up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/range/pieces.h"
#include "server/query/read/selection.h"
#include "storage/model/series.h"
#include "storage/model/series_reader.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr uint32_t kMaxPoints = 100'000;
inline constexpr uint64_t kDefaultRangeSeries = 10'000;
inline constexpr uint64_t kDefaultRangeSamples = 50'000'000;
// The most labels in Aggregation.by: no series has more.
inline constexpr int kMaxByLabels = 64;

// The configuration allows no more, whatever a request asks for.
struct RangeLimits {
  uint64_t max_series = 1'000'000;
  uint64_t max_samples = 100'000'000;
};

struct RangePlan {
  Selection selection;
  storage::ReadOptions read;
  bool by_step = false;     // The axis.
  uint32_t max_points = 0;  // 0: as recorded.
  v1::Attempts attempts = v1::ATTEMPTS_ALL;
  v1::CounterFunction counter = v1::COUNTER_FUNCTION_UNSPECIFIED;
  v1::AggregateFunction function = v1::AGGREGATE_FUNCTION_UNSPECIFIED;
  double quantile = 0;          // For QUANTILE.
  std::vector<std::string> by;  // Sorted, unique, without "attempt".
  bool by_attempt = false;
  BucketValues bucket_values;
  uint64_t max_series = kDefaultRangeSeries;
  uint64_t max_samples = kDefaultRangeSamples;
  // Of an aggregate by time, if its buckets are given: between these positions.
  std::optional<AxisExtent> grid;

  bool aggregates() const { return function != v1::AGGREGATE_FUNCTION_UNSPECIFIED; }
};

//   INVALID_ARGUMENT  the text names the field and what was expected.
absl::StatusOr<RangePlan> MakeRangePlan(const v1::RangeRequest& request, const RangeLimits& limits);

// One series of the answer.
struct RangeOutput {
  std::vector<storage::SeriesPtr> members;  // One, unless they are folded.
  std::optional<uint32_t> attempt;          // Kept apart by Aggregation.by.
};

// In the order of each one's first member, then of the attempts. `attempts` are the job's selected
// attempts, ascending.
std::vector<RangeOutput> GroupSeries(const RangePlan& plan,
                                     const std::vector<storage::SeriesPtr>& series,
                                     const std::vector<uint32_t>& attempts);

// Describes an output in the answer; an aggregate by the labels that it keeps apart.
void FillInfo(const RangePlan& plan, const RangeOutput& output, v1::SeriesInfo* info);

}  // namespace tacho::server::query
