// Checks a Range request field by field, in the order of query.proto, and groups the series that it
// selects into those of the answer.
#include "server/query/range/range_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

uint64_t LimitOr(uint64_t asked, uint64_t fallback, uint64_t most) {
  return std::min(asked == 0 ? fallback : asked, most);
}

absl::Status SetCounter(const v1::RangeRequest& request, RangePlan* plan) {
  if (!v1::CounterFunction_IsValid(request.counter())) {
    return errors::InvalidFieldError("counter", "must be COUNTER_FUNCTION_INCREASE or _RATE");
  }
  plan->counter = request.counter();
  if (plan->counter != v1::COUNTER_FUNCTION_UNSPECIFIED && plan->by_step) {
    return errors::InvalidFieldError("counter", "goes with AXIS_TIME only: counters grow in time");
  }
  return absl::OkStatus();
}

absl::Status SetBucketValues(const v1::RangeRequest& request, RangePlan* plan) {
  if (request.bucket_values().empty()) return absl::OkStatus();
  if (plan->max_points == 0) {
    return errors::InvalidFieldError("bucket_values",
                                     "goes with max_points only: there are no buckets");
  }
  auto values = BucketValues::Of(request.bucket_values(), v1::BucketValue_IsValid, "bucket_values");
  if (values.ok()) plan->bucket_values = *values;
  return values.status();
}

absl::Status SetQuantile(const v1::Aggregation& aggregation, RangePlan* plan) {
  const double quantile = aggregation.quantile();
  if (aggregation.function() != v1::AGGREGATE_FUNCTION_QUANTILE) {
    if (quantile == 0) return absl::OkStatus();
    return errors::InvalidFieldError("aggregation.quantile",
                                     "goes with AGGREGATE_FUNCTION_QUANTILE only");
  }
  if (!(quantile >= 0 && quantile <= 1)) {
    return errors::InvalidFieldError("aggregation.quantile", "must be from 0 to 1");
  }
  plan->quantile = quantile;
  return absl::OkStatus();
}

absl::Status SetAggregation(const v1::RangeRequest& request, RangePlan* plan) {
  const v1::Aggregation& aggregation = request.aggregation();
  if (!v1::AggregateFunction_IsValid(aggregation.function())) {
    return errors::InvalidFieldError("aggregation.function",
                                     "is not a function that is known here");
  }
  plan->function = aggregation.function();
  TACHO_RETURN_IF_ERROR(SetQuantile(aggregation, plan));
  if (!plan->aggregates() && aggregation.by_size() > 0) {
    return errors::InvalidFieldError("aggregation.function", "is required with aggregation.by");
  }
  if (aggregation.by_size() > kMaxByLabels) {
    return errors::InvalidFieldError("aggregation.by",
                                     absl::StrCat("at most ", kMaxByLabels, " labels"));
  }
  plan->by.assign(aggregation.by().begin(), aggregation.by().end());
  std::sort(plan->by.begin(), plan->by.end());
  plan->by.erase(std::unique(plan->by.begin(), plan->by.end()), plan->by.end());
  plan->by_attempt = std::erase(plan->by, "attempt") > 0;
  if (plan->aggregates() && !plan->by_step && plan->max_points == 0) {
    return errors::InvalidFieldError(
        "max_points", absl::StrCat("is required to aggregate along time, 1 to ", kMaxPoints,
                                   ": samples of different series share no "
                                   "times, they meet in buckets"));
  }
  return absl::OkStatus();
}

absl::Status SetGrid(const v1::RangeRequest& request, RangePlan* plan) {
  if (!request.has_grid()) return absl::OkStatus();
  const v1::GivenGrid& grid = request.grid();
  if (!plan->aggregates() || plan->by_step) {
    return errors::InvalidFieldError("grid", "is for aggregates by time");
  }
  if (grid.first_unix_ns() > grid.last_unix_ns()) {
    return errors::InvalidFieldError("grid.last_unix_ns", "is before grid.first_unix_ns");
  }
  plan->grid = AxisExtent{grid.first_unix_ns(), grid.last_unix_ns()};
  // A counter's growth needs the sample before it, so what lies before the grid is left out later.
  if (plan->counter == v1::COUNTER_FUNCTION_UNSPECIFIED) {
    plan->read.begin_ns = std::max(plan->read.begin_ns, grid.first_unix_ns());
  }
  if (grid.last_unix_ns() < INT64_MAX) {
    plan->read.end_ns = std::min(plan->read.end_ns, grid.last_unix_ns() + 1);
  }
  return absl::OkStatus();
}

// Value of a label as aggregation keeps it apart; empty if the series has none.
std::string LabelOf(const storage::Series& series, absl::string_view name) {
  if (name == "job") return series.source->job;
  if (name == "host") return series.source->host;
  if (name == "task") {
    return series.source->task.has_value() ? absl::StrCat(*series.source->task) : "";
  }
  return std::string(series.labels->Find(name));
}

std::vector<std::string> GroupKey(const storage::Series& series,
                                  const std::vector<std::string>& by) {
  std::vector<std::string> key = {series.metric->name};
  for (const std::string& label : by) key.push_back(LabelOf(series, label));
  return key;
}

}  // namespace

absl::StatusOr<RangePlan> MakeRangePlan(const v1::RangeRequest& request,
                                        const RangeLimits& limits) {
  RangePlan plan;
  absl::StatusOr<Selection> selection = MakeSelection(request.selector());
  if (!selection.ok()) return selection.status();
  plan.selection = *std::move(selection);
  plan.attempts = request.attempts();
  absl::StatusOr<storage::ReadOptions> read = ReadOptionsOf(request);
  if (!read.ok()) return read.status();
  plan.read = *std::move(read);
  if (!v1::Axis_IsValid(request.axis())) {
    return errors::InvalidFieldError("axis", "must be AXIS_TIME or AXIS_STEP");
  }
  plan.by_step = request.axis() == v1::AXIS_STEP;
  plan.max_points = request.max_points();
  if (plan.max_points > kMaxPoints) {
    return errors::InvalidFieldError("max_points", absl::StrCat("is at most ", kMaxPoints));
  }
  // Rows without a step have no place on the axis of steps.
  if (plan.by_step && !plan.read.first_step.has_value()) {
    plan.read.first_step = storage::kNoStep + 1;
  }
  TACHO_RETURN_IF_ERROR(SetBucketValues(request, &plan));
  TACHO_RETURN_IF_ERROR(SetCounter(request, &plan));
  TACHO_RETURN_IF_ERROR(SetAggregation(request, &plan));
  TACHO_RETURN_IF_ERROR(SetGrid(request, &plan));
  plan.max_series = LimitOr(request.max_series(), kDefaultRangeSeries, limits.max_series);
  plan.max_samples = LimitOr(request.max_samples(), kDefaultRangeSamples, limits.max_samples);
  return plan;
}

std::vector<RangeOutput> GroupSeries(const RangePlan& plan,
                                     const std::vector<storage::SeriesPtr>& series,
                                     const std::vector<uint32_t>& attempts) {
  std::vector<RangeOutput> outputs;
  if (!plan.aggregates()) {
    for (const storage::SeriesPtr& one : series) outputs.push_back({{one}, std::nullopt});
    return outputs;
  }
  absl::flat_hash_map<std::vector<std::string>, size_t> groups;
  std::vector<std::vector<storage::SeriesPtr>> members;
  for (const storage::SeriesPtr& one : series) {
    // Series of one metric follow each other.
    const bool another = !plan.by.empty() || members.empty() ||
                         members.back().front()->metric->name != one->metric->name;
    size_t group = members.size() - (another ? 0 : 1);
    if (another) group = groups.try_emplace(GroupKey(*one, plan.by), group).first->second;
    if (group == members.size()) members.emplace_back();
    TACHO_CHECK(group < members.size());
    members[group].push_back(one);
  }
  for (const auto& group : members) {
    if (!plan.by_attempt) outputs.push_back({group, std::nullopt});
    for (size_t i = 0; plan.by_attempt && i < attempts.size(); ++i) {
      outputs.push_back({group, attempts[i]});
    }
  }
  return outputs;
}

void FillInfo(const RangePlan& plan, const RangeOutput& output, v1::SeriesInfo* info) {
  TACHO_CHECK(!output.members.empty());
  const storage::Series& series = *output.members.front();
  if (!plan.aggregates()) return ToProto(series, info);
  ToProto(*series.metric, info->mutable_metric());
  info->set_job(series.source->job);
  for (const std::string& name : plan.by) {
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

}  // namespace tacho::server::query
