#include "server/query/range_query.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "server/query/across.h"
#include "server/query/pieces.h"
#include "server/query/step_order.h"

namespace tacho::server {
namespace {

// Value of a label as aggregation keeps it apart; empty if the series has none.
std::string LabelOf(const storage::Series& series, absl::string_view name) {
  if (name == "job") return series.source->job;
  if (name == "host") return series.source->host;
  if (name == "task")
    return series.source->task.has_value() ? absl::StrCat(*series.source->task) : "";
  for (const auto& [label, value] : *series.labels) {
    if (label == name) return std::string(value);
  }
  return "";
}

std::vector<std::string> GroupKey(const storage::Series& series,
                                  const std::vector<std::string>& by) {
  std::vector<std::string> key = {series.metric->name};
  for (const std::string& label : by) key.push_back(LabelOf(series, label));
  return key;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RangeQuery>> RangeQuery::Create(const storage::Store& store,
                                                               const v1::RangeRequest& request,
                                                               const RangeLimits& limits,
                                                               const QueryControl& control) {
  absl::StatusOr<RangePlan> plan = MakeRangePlan(request, limits);
  if (!plan.ok()) return plan.status();
  auto series = FindSelected(store, plan->selection, plan->max_series);
  if (!series.ok()) return series.status();
  std::unique_ptr<RangeQuery> query(
      new RangeQuery(store, *std::move(plan), control, store.OpenView(*series)));
  query->Group(*series);
  return query;
}

RangeQuery::RangeQuery(const storage::Store& store, RangePlan plan, const QueryControl& control,
                       std::unique_ptr<storage::ReadView> view)
    : store_(store), plan_(std::move(plan)), control_(control), view_(std::move(view)) {}

void RangeQuery::Group(const std::vector<storage::SeriesPtr>& series) {
  if (!plan_.aggregates()) {
    for (const storage::SeriesPtr& one : series) outputs_.push_back({{one}, std::nullopt});
    return;
  }
  std::vector<std::optional<uint32_t>> attempts = {std::nullopt};
  if (plan_.by_attempt) {
    attempts.clear();
    const auto detail = store_.FindJob(plan_.selection.selector.job);
    for (const auto& info : detail ? detail->attempts : std::vector<storage::AttemptInfo>()) {
      if (plan_.selection.attempts.Allows(info.attempt)) attempts.emplace_back(info.attempt);
    }
  }
  // Groups come in the order of their first series, which is that of the store.
  absl::flat_hash_map<std::vector<std::string>, size_t> groups;
  std::vector<std::vector<storage::SeriesPtr>> members;
  for (const storage::SeriesPtr& one : series) {
    const auto [it, added] = groups.try_emplace(GroupKey(*one, plan_.by), members.size());
    if (added) members.emplace_back();
    members[it->second].push_back(one);
  }
  for (const auto& group : members) {
    for (const auto& attempt : attempts) outputs_.push_back({group, attempt});
  }
}

SeriesScan RangeQuery::Scan(const storage::SeriesPtr& series,
                            std::optional<uint32_t> attempt) const {
  storage::ReadOptions read = plan_.read;
  if (attempt.has_value()) read.attempt = attempt;
  return SeriesScan(view_->Read(series, read), plan_.selection.attempts, control_);
}

absl::StatusOr<bool> RangeQuery::Next(v1::RangeResponse* piece) {
  for (;;) {
    piece->Clear();
    if (!begun_) {
      if (next_output_ == outputs_.size()) return false;
      if (absl::Status status = Begin(outputs_[next_output_]); !status.ok()) return status;
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
  if (absl::Status status = CountSamples(*piece); !status.ok()) return status;
  piece->set_series_index(series_index_);
  if (!started_) FillInfo(outputs_[next_output_], piece->mutable_series());
  started_ = true;
  return true;
}

absl::Status RangeQuery::Begin(const Output& output) {
  scan_.reset();
  block_.clear();
  points_.clear();
  buckets_.clear();
  block_used_ = held_used_ = 0;
  if (plan_.aggregates()) return BeginFolded(output);
  const storage::SeriesPtr& series = output.members.front();
  if (plan_.max_points > 0) {
    absl::StatusOr<AxisExtent> extent = ExtentOf(series, output.attempt);
    if (!extent.ok()) return extent.status();
    auto buckets = ReduceOne(series, output.attempt, *extent);
    if (!buckets.ok()) return buckets.status();
    buckets_ = *std::move(buckets);
    return absl::OkStatus();
  }
  if (plan_.by_step) {
    SeriesScan scan = Scan(series, output.attempt);
    auto points = SortedBySteps(&scan);
    if (!points.ok()) return points.status();
    points_ = *std::move(points);
    return absl::OkStatus();
  }
  scan_.emplace(Scan(series, output.attempt));
  return absl::OkStatus();
}

absl::Status RangeQuery::BeginFolded(const Output& output) {
  if (!plan_.by_step) {
    if (absl::Status status = FindTotalExtent(); !status.ok()) return status;
  }
  Fold fold(plan_.function);
  for (const storage::SeriesPtr& series : output.members) {
    absl::Status status;
    if (plan_.by_step) {
      SeriesScan scan = Scan(series, output.attempt);
      auto samples = SortedBySteps(&scan);
      if (!samples.ok()) return samples.status();
      KeepNewestOfEachStep(&*samples);
      for (const Sample& sample : *samples) status.Update(fold.AddAtStep(sample));
    } else {
      auto buckets = ReduceOne(series, output.attempt, *total_extent_);
      if (!buckets.ok()) return buckets.status();
      for (const Bucket& bucket : *buckets) status.Update(fold.AddBucket(bucket));
    }
    if (!status.ok()) return status;
  }
  const std::vector<FoldedPlace> places = fold.Take();
  if (!plan_.by_step) {
    buckets_ = AsBuckets(places);
  } else if (plan_.max_points > 0) {
    buckets_ = ReduceSteps(places, plan_.max_points);
  } else {
    for (const FoldedPlace& place : places) {
      points_.push_back({place.last_time_ns, place.position, place.attempt, place.value});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<AxisExtent> RangeQuery::ExtentOf(const storage::SeriesPtr& series,
                                                std::optional<uint32_t> attempt) const {
  AxisExtent extent;
  absl::Status status =
      Scan(series, attempt)
          .ForEachBlock([&](const storage::SampleSummary&) { return !plan_.by_step; },
                        [&](const storage::SampleSummary& summary) {
                          extent.Include(summary.first_time_ns);
                          extent.Include(summary.last_time_ns);
                        },
                        [&](const storage::SampleBlock& block) {
                          if (!plan_.by_step) {
                            extent.Include(block.times.front());
                            extent.Include(block.times.back());
                            return;
                          }
                          for (const int64_t step : block.steps) extent.Include(step);
                        });
  if (!status.ok()) return status;
  return extent;
}

absl::StatusOr<std::vector<Bucket>> RangeQuery::ReduceOne(const storage::SeriesPtr& series,
                                                          std::optional<uint32_t> attempt,
                                                          const AxisExtent& extent) const {
  if (extent.empty()) return std::vector<Bucket>();
  const BucketGrid grid(extent, plan_.max_points);
  Reducer reducer(grid, plan_.by_step);
  absl::Status status =
      Scan(series, attempt)
          .ForEachBlock(
              [&](const storage::SampleSummary& summary) {
                return !plan_.by_step &&
                       grid.IndexOf(summary.first_time_ns) == grid.IndexOf(summary.last_time_ns);
              },
              [&](const storage::SampleSummary& summary) { reducer.AddByTime(summary); },
              [&](const storage::SampleBlock& block) { reducer.Add(block); });
  if (!status.ok()) return status;
  return reducer.Take();
}

absl::Status RangeQuery::FindTotalExtent() {
  if (total_extent_.has_value()) return absl::OkStatus();
  AxisExtent total;
  for (const Output& output : outputs_) {
    for (const storage::SeriesPtr& series : output.members) {
      absl::StatusOr<AxisExtent> extent = ExtentOf(series, output.attempt);
      if (!extent.ok()) return extent.status();
      if (extent->empty()) continue;
      total.Include(extent->first);
      total.Include(extent->last);
    }
  }
  total_extent_ = total;
  return absl::OkStatus();
}

absl::StatusOr<bool> RangeQuery::FillData(v1::RangeResponse* piece) {
  if (scan_.has_value()) return FillFromScan(piece->mutable_points());
  const size_t left = points_.size() + buckets_.size() - held_used_;  // One of them is empty.
  if (left == 0) return false;
  if (!points_.empty()) {
    const size_t count = std::min(left, kSamplesPerPiece);
    FillPoints(std::span(points_).subspan(held_used_, count), piece->mutable_points());
    held_used_ += count;
  } else {
    const size_t count = std::min(left, kBucketsPerPiece);
    FillBuckets(std::span(buckets_).subspan(held_used_, count), piece->mutable_buckets());
    held_used_ += count;
  }
  return true;
}

absl::StatusOr<bool> RangeQuery::FillFromScan(v1::Points* points) {
  if (block_used_ == block_.size()) {
    block_used_ = 0;
    absl::StatusOr<bool> more = scan_->Next(&block_);
    if (!more.ok() || !*more) return more;
  }
  const size_t end = std::min(block_.size(), block_used_ + kSamplesPerPiece);
  FillPoints(block_, block_used_, end, points);
  block_used_ = end;
  return true;
}

void RangeQuery::FillInfo(const Output& output, v1::SeriesInfo* info) const {
  const storage::Series& series = *output.members.front();
  if (!plan_.aggregates()) return ToProto(series, info);
  ToProto(*series.metric, info->mutable_metric());
  info->set_job(series.source->job);
  for (const std::string& name : plan_.by) {
    if (name == "job") continue;  // Always there.
    if (name == "task") {
      if (series.source->task.has_value()) info->set_task(*series.source->task);
    } else if (name == "host") {
      info->set_host(series.source->host);
    } else if (std::string value = LabelOf(series, name); !value.empty()) {
      v1::Label* label = info->add_labels();
      label->set_name(name);
      label->set_value(std::move(value));
    }
  }
  if (output.attempt.has_value()) {
    v1::Label* label = info->add_labels();
    label->set_name("attempt");
    label->set_value(absl::StrCat(*output.attempt));
  }
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

}  // namespace tacho::server
