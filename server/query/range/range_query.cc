// Makes the answer one series at a time: what a series needs in memory is held only while its
// pieces are sent, so that an answer may be larger than memory.
#include "server/query/range/range_query.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/query/range/pieces.h"
#include "server/query/range/shared_grid.h"
#include "server/query/read/across.h"
#include "server/query/read/step_order.h"

namespace tacho::server::query {
namespace {

// Attempts of the job that are selected, ascending.
absl::StatusOr<std::vector<uint32_t>> SelectedAttempts(const storage::Store& store,
                                                       const Selection& selection) {
  TACHO_ASSIGN_OR_RETURN(const auto known, store.Attempts(selection.selector.job));
  std::vector<uint32_t> attempts;
  for (const storage::AttemptInfo& info : known) {
    if (selection.attempts.Allows(info.attempt)) attempts.push_back(info.attempt);
  }
  return attempts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RangeQuery>> RangeQuery::Create(const storage::Store& store,
                                                               const v1::RangeRequest& request,
                                                               const RangeLimits& limits,
                                                               const QueryControl& control,
                                                               SpareThread spare) {
  TACHO_ASSIGN_OR_RETURN(RangePlan plan, MakeRangePlan(request, limits));
  TACHO_RETURN_IF_ERROR(ChooseAttempts(store, plan.attempts, &plan.selection));
  plan.read.attempt = plan.selection.attempts.only();
  TACHO_ASSIGN_OR_RETURN(auto series, FindSelected(store, plan.selection, plan.max_series));
  absl::StatusOr<std::vector<uint32_t>> attempts = std::vector<uint32_t>();
  if (plan.by_attempt) attempts = SelectedAttempts(store, plan.selection);
  if (!attempts.ok()) return attempts.status();
  std::unique_ptr<RangeQuery> query(
      new RangeQuery(std::move(plan), control, store.OpenView(series)));
  query->outputs_ = GroupSeries(query->plan_, series, *attempts);
  if (!query->plan_.aggregates()) {
    query->ahead_.emplace(store, query->plan_, query->outputs_, std::move(spare));
  }
  return query;
}

RangeQuery::RangeQuery(RangePlan plan, const QueryControl& control,
                       std::unique_ptr<storage::ReadView> view)
    : plan_(std::move(plan)), reader_(plan_, control, std::move(view)) {}

absl::StatusOr<bool> RangeQuery::Next(v1::RangeResponse* piece) {
  for (;;) {
    piece->Clear();
    if (!begun_) {
      if (next_output_ == outputs_.size()) return false;
      TACHO_RETURN_IF_ERROR(Begin(outputs_[next_output_]));
      begun_ = true;
      started_ = false;
    }
    absl::StatusOr<bool> filled = FillData(piece);
    if (!filled.ok()) return filled;
    if (*filled) break;
    begun_ = false;
    if (started_) ++series_index_;
    ++next_output_;
  }
  TACHO_RETURN_IF_ERROR(CountSamples(*piece));
  piece->set_series_index(series_index_);
  if (!started_) {
    FillInfo(plan_, outputs_[next_output_], piece->mutable_series());
    if (plan_.max_points > 0) piece->set_bucket_width(bucket_width_);
  }
  started_ = true;
  return true;
}

absl::Status RangeQuery::Begin(const RangeOutput& output) {
  scan_.reset();
  chunk_.Set(storage::SampleView());
  points_.clear();
  buckets_.clear();
  bucket_width_ = 0;
  scanned_used_ = held_used_ = 0;
  if (plan_.aggregates()) return BeginFolded(output);
  ahead_->Pass(next_output_, reader_.columns_decoded());
  TACHO_CHECK(output.members.size() == 1);
  const storage::SeriesPtr& series = output.members.front();
  if (plan_.max_points > 0) {
    TACHO_ASSIGN_OR_RETURN(auto reduced, reader_.Reduce(series, output.attempt));
    buckets_ = std::move(reduced.buckets);
    bucket_width_ = reduced.width;
    return absl::OkStatus();
  }
  if (plan_.by_step) {
    SeriesScan scan = reader_.Scan(series, output.attempt);
    TACHO_ASSIGN_OR_RETURN(auto points, SortedBySteps(&scan));
    points_ = std::move(points);
    return absl::OkStatus();
  }
  scan_.emplace(reader_.Scan(series, output.attempt));
  return absl::OkStatus();
}

absl::Status RangeQuery::BeginFolded(const RangeOutput& output) {
  if (!plan_.by_step) {
    TACHO_RETURN_IF_ERROR(FindSharedGrid());
  }
  const bool increases = plan_.counter == v1::COUNTER_FUNCTION_INCREASE;
  Fold fold({plan_.function, plan_.quantile, /*enter_sums=*/increases});
  TACHO_RETURN_IF_ERROR(plan_.by_step ? FoldAlongSteps(output, &fold)
                                      : FoldAlongTime(output, &fold));
  const std::vector<FoldedPlace> places = fold.Take();
  if (!plan_.by_step) {
    buckets_ = AsBuckets(places);
  } else if (plan_.max_points > 0) {
    ReducedSeries reduced = ReduceSteps(places, plan_.max_points);
    buckets_ = std::move(reduced.buckets);
    bucket_width_ = reduced.width;
  } else {
    for (const FoldedPlace& place : places) {
      points_.push_back({place.last_time_ns, place.position, place.attempt, place.value});
    }
  }
  return absl::OkStatus();
}

absl::Status RangeQuery::FoldAlongSteps(const RangeOutput& output, Fold* fold) const {
  for (const storage::SeriesPtr& series : output.members) {
    SeriesScan scan = reader_.Scan(series, output.attempt);
    TACHO_ASSIGN_OR_RETURN(auto samples, SortedBySteps(&scan));
    KeepNewestOfEachStep(&samples);
    for (const Sample& sample : samples) {
      TACHO_RETURN_IF_ERROR(fold->AddAtStep(sample));
    }
  }
  return absl::OkStatus();
}

absl::Status RangeQuery::FoldAlongTime(const RangeOutput& output, Fold* fold) {
  if (!shared_grid_.has_value()) return absl::OkStatus();
  bucket_width_ = shared_grid_->width();
  FoldByTime by_time(*shared_grid_, fold);
  for (const storage::SeriesPtr& series : output.members) {
    TACHO_RETURN_IF_ERROR(reader_.FoldInto(series, output.attempt, *shared_grid_, &by_time));
  }
  return absl::OkStatus();
}

absl::Status RangeQuery::FindSharedGrid() {
  if (next_output_ > 0) return absl::OkStatus();  // Found before, or there is none.
  if (plan_.grid.has_value()) {
    shared_grid_.emplace(*plan_.grid, plan_.max_points);
    return absl::OkStatus();
  }
  AxisExtent total;
  for (const RangeOutput& output : outputs_) {
    for (const storage::SeriesPtr& series : output.members) {
      TACHO_ASSIGN_OR_RETURN(const AxisExtent extent, reader_.ExtentOf(series, output.attempt));
      if (extent.empty()) continue;
      total.Include(extent.first);
      total.Include(extent.last);
    }
  }
  if (total.empty()) return absl::OkStatus();
  TACHO_ASSIGN_OR_RETURN(auto grid, MakeSharedGrid(reader_, outputs_, total, plan_.max_points));
  shared_grid_ = std::move(grid);
  return absl::OkStatus();
}

absl::StatusOr<bool> RangeQuery::FillData(v1::RangeResponse* piece) {
  if (scan_.has_value()) return FillFromScan(piece->mutable_points());
  TACHO_CHECK(points_.empty() || buckets_.empty());
  TACHO_CHECK(held_used_ <= points_.size() + buckets_.size());
  const size_t left = points_.size() + buckets_.size() - held_used_;
  if (left == 0) return false;
  if (!points_.empty()) {
    const size_t count = std::min(left, kSamplesPerPiece);
    FillPoints(std::span(points_).subspan(held_used_, count), piece->mutable_points());
    held_used_ += count;
  } else {
    const size_t count = std::min(left, kBucketsPerPiece);
    FillBuckets(std::span(buckets_).subspan(held_used_, count), plan_.bucket_values,
                piece->mutable_buckets());
    held_used_ += count;
  }
  return true;
}

absl::StatusOr<bool> RangeQuery::FillFromScan(v1::Points* points) {
  if (scanned_used_ == chunk_.samples().size()) {
    TACHO_ASSIGN_OR_RETURN(const bool more, scan_->Next({}, &chunk_));
    if (!more) return false;
    scanned_used_ = 0;
  }
  const storage::SampleView& samples = chunk_.samples();
  const size_t end = std::min(samples.size(), scanned_used_ + kSamplesPerPiece);
  FillPoints(samples, scanned_used_, end, points);
  scanned_used_ = end;
  return true;
}

absl::Status RangeQuery::CountSamples(const v1::RangeResponse& piece) {
  samples_ += piece.has_points() ? static_cast<uint64_t>(piece.points().values_size())
                                 : static_cast<uint64_t>(piece.buckets().counts_size());
  if (samples_ <= plan_.max_samples) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the answer has more than max_samples = ", plan_.max_samples,
                   " samples: give a shorter range, select fewer series, set max_points, or raise "
                   "max_samples (up to the collector's query.max_samples)"));
}

}  // namespace tacho::server::query
