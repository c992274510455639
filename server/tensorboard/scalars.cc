#include "server/tensorboard/scalars.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/tensorboard/experiment.h"
#include "server/tensorboard/scalar_points.h"
#include "server/tensorboard/tags.h"

namespace tacho::server::tb {
namespace {

float ToFloat(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (std::isfinite(value)) value = std::clamp(value, -kLargest, kLargest);
  return static_cast<float>(value);
}

// Calls visit for every run that the request is about, with its tags; runs without one are left
// out.
template <typename Request>
absl::Status ForEachRun(const World& world, const Request& request,
                        absl::FunctionRef<absl::Status(const Run&, const TagsOfRun&)> visit) {
  TACHO_RETURN_IF_ERROR(CheckPlugin(request.plugin_filter()));
  TACHO_ASSIGN_OR_RETURN(auto experiment, FindExperiment(world.store, request.experiment_id(),
                                                         world.rights, world.now));
  if (request.plugin_filter().plugin_name() != kScalarsPlugin) return absl::OkStatus();
  const NameFilter tags = NameFilter::Tags(request.run_tag_filter());
  for (const Run& run :
       FindRuns(world.store, experiment, NameFilter::Runs(request.run_tag_filter()))) {
    TACHO_ASSIGN_OR_RETURN(auto found,
                           FindScalarTags(world.store, run, tags, world.max_series, world.control));
    if (found.tags.empty()) continue;
    TACHO_RETURN_IF_ERROR(visit(run, found));
  }
  return absl::OkStatus();
}

absl::Status TooMuch(absl::string_view what, int64_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the answer has more than ", limit, " ", what,
                   ": choose runs or tags, or open /experiment/JOB/ instead of all jobs"));
}

void FillMetadata(const Run& run, const ScalarTag& tag, ::tensorboard::data::ScalarMetadata* to) {
  to->set_max_step(tag.by_step ? tag.last_step : StepOfTime(run, tag.last_time_ns));
  to->set_max_wall_time(WallTime(tag.last_time_ns));
  ::tensorboard::SummaryMetadata* summary = to->mutable_summary_metadata();
  summary->mutable_plugin_data()->set_plugin_name(kScalarsPlugin.data(), kScalarsPlugin.size());
  summary->set_data_class(::tensorboard::DATA_CLASS_SCALAR);
  const storage::Metric& metric = *tag.series.front()->metric;
  std::string text = metric.help;
  if (!metric.unit.empty())
    absl::StrAppend(&text, text.empty() ? "" : " ", "Unit: ", metric.unit, ".");
  if (tag.series.size() > 1) {
    absl::StrAppend(&text, text.empty() ? "" : " ", "Mean of ", tag.series.size(), " series.");
  }
  summary->set_summary_description(text);
}

void FillData(const std::vector<ScalarPoint>& points, ::tensorboard::data::ScalarData* to) {
  const int size = static_cast<int>(points.size());
  to->mutable_step()->Reserve(size);
  to->mutable_wall_time()->Reserve(size);
  to->mutable_value()->Reserve(size);
  for (const ScalarPoint& point : points) {
    to->add_step(point.step);
    to->add_wall_time(WallTime(point.time_ns));
    to->add_value(ToFloat(point.value));
  }
}

}  // namespace

absl::Status ListScalars(const World& world, const ::tensorboard::data::ListScalarsRequest& request,
                         ::tensorboard::data::ListScalarsResponse* response) {
  int64_t tags = 0;
  return ForEachRun(world, request, [&](const Run& run, const TagsOfRun& found) {
    tags += static_cast<int64_t>(found.tags.size());
    if (tags > kMaxTagsOfAnswer) return TooMuch("tags", kMaxTagsOfAnswer);
    auto* entry = response->add_runs();
    entry->set_run_name(run.name);
    for (const ScalarTag& tag : found.tags) {
      auto* to = entry->add_tags();
      to->set_tag_name(tag.name);
      FillMetadata(run, tag, to->mutable_metadata());
    }
    return absl::OkStatus();
  });
}

absl::Status ReadScalars(const World& world, const ::tensorboard::data::ReadScalarsRequest& request,
                         ::tensorboard::data::ReadScalarsResponse* response) {
  TACHO_RETURN_IF_ERROR(CheckDownsample(request.has_downsample(), request.downsample()));
  // One more than an answer may have, so that too many are noticed.
  const int64_t max_points = std::min(request.downsample().num_points(), kMaxPointsOfAnswer + 1);
  int64_t points_of_answer = 0;
  return ForEachRun(world, request, [&](const Run& run, const TagsOfRun& found) -> absl::Status {
    auto* entry = response->add_runs();
    entry->set_run_name(run.name);
    const auto view = world.store.OpenView(found.distinct_series);
    for (const ScalarTag& tag : found.tags) {
      auto points =
          ReadScalarPoints(view.get(), run, tag, static_cast<size_t>(max_points), world.control);
      if (!points.ok()) return points.status();
      points_of_answer += static_cast<int64_t>(points->size());
      if (points_of_answer > kMaxPointsOfAnswer) return TooMuch("points", kMaxPointsOfAnswer);
      auto* to = entry->add_tags();
      to->set_tag_name(tag.name);
      FillData(*points, to->mutable_data());
    }
    return absl::OkStatus();
  });
}

}  // namespace tacho::server::tb
