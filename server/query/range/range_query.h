// The answer to a Range request, one piece at a time: as recorded, reduced, or folded across
// series.
//
//   axis  max_points  aggregation  what is held in memory for one series of the answer
//   time  -           -            a block of samples
//   time  N           -            N buckets; columns that lie in one bucket are not decoded,
//                                  unless a counter function or a restart needs their samples
//   step  -           -            its samples, to be sorted (step_order.h)
//   step  N           -            N buckets; read twice
//   step  - or N      yes          one place a step; for quantiles every value (across.h)
//   time  N           yes          N places and a bucket; for quantiles N values a series
//
// Where gaps would take many buckets, a series is read again for buckets without them.
//
// Buckets divide the time from the first sample to the last. The headers of a series' first and
// last columns give both. Only if a condition on attempts leaves out the last sample, the series is
// first read once for that, by the headers of its columns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/range/columns_ahead.h"
#include "server/query/range/range_plan.h"
#include "server/query/range/range_reader.h"
#include "server/query/read/across.h"
#include "server/query/read/query_control.h"
#include "server/query/read/reduce.h"
#include "server/query/read/series_scan.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// One thread at a time. The store and the control must outlive it.
class RangeQuery {
 public:
  // Finds the series. A spare thread may decode columns ahead, see columns_ahead.h.
  //   INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED  as query.proto says.
  static absl::StatusOr<std::unique_ptr<RangeQuery>> Create(const storage::Store& store,
                                                            const v1::RangeRequest& request,
                                                            const RangeLimits& limits,
                                                            const QueryControl& control,
                                                            SpareThread spare = {});

  // Replaces *piece with the next; false if none is left. Series without a sample in the range have
  // no piece.
  //   RESOURCE_EXHAUSTED  max_samples, or a limit of step_order.h or across.h.
  //   DATA_LOSS           stored bytes are damaged.
  //   others              as QueryControl::Check().
  absl::StatusOr<bool> Next(v1::RangeResponse* piece);

  // Samples and buckets in the pieces so far.
  uint64_t samples() const { return samples_; }

 private:
  RangeQuery(RangePlan plan, const QueryControl& control, std::unique_ptr<storage::ReadView> view);

  // Prepares the next output: opens scan_, or fills points_ or buckets_.
  absl::Status Begin(const RangeOutput& output);
  absl::Status BeginFolded(const RangeOutput& output);
  absl::Status FoldAlongSteps(const RangeOutput& output, Fold* fold) const;
  absl::Status FoldAlongTime(const RangeOutput& output, Fold* fold);
  absl::Status FindSharedGrid();

  // Fills the data of *piece with what is left of the output; false if that is nothing.
  absl::StatusOr<bool> FillData(v1::RangeResponse* piece);
  absl::StatusOr<bool> FillFromScan(v1::Points* points);
  absl::Status CountSamples(const v1::RangeResponse& piece);

  const RangePlan plan_;
  RangeReader reader_;  // Has a view of all series: every pass sees the same.
  std::vector<RangeOutput> outputs_;
  std::optional<ColumnsAhead> ahead_;      // Without an aggregation.
  std::optional<BucketGrid> shared_grid_;  // Covers all series: the buckets in which they meet.

  size_t next_output_ = 0;
  uint32_t series_index_ = 0;
  bool begun_ = false;    // An output is being returned ...
  bool started_ = false;  // ... and has had a piece.
  std::optional<SeriesScan> scan_;
  storage::Chunk chunk_;     // From scan_, ...
  size_t scanned_used_ = 0;  // ... returned up to here.
  std::vector<Sample> points_;
  std::vector<Bucket> buckets_;
  uint64_t bucket_width_ = 0;
  size_t held_used_ = 0;  // How many of points_ or buckets_ are returned.
  uint64_t samples_ = 0;
};

}  // namespace tacho::server::query
