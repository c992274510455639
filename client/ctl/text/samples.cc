#include "client/ctl/text/samples.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace tacho::ctl {
namespace {

// How "no step" is written among rows that have one.
constexpr int64_t kNoStep = std::numeric_limits<int64_t>::min();

template <typename Steps>
std::optional<int64_t> StepAt(const Steps& steps, int index) {
  if (steps.empty() || steps.Get(index) == kNoStep) return std::nullopt;
  return steps.Get(index);
}

bool AllOf(int size, std::initializer_list<int> sizes) {
  for (const int other : sizes) {
    if (other != size) return false;
  }
  return true;
}

bool GoodPoints(const v1::Points& points) {
  const int size = points.times_unix_ns_size();
  return points.values_size() == size && (points.steps().empty() || points.steps_size() == size) &&
         (points.attempts().empty() || points.attempts_size() == size);
}

bool GoodBuckets(const v1::Buckets& buckets) {
  const int size = buckets.first_times_unix_ns_size();
  const bool steps_fit = (buckets.first_steps().empty() && buckets.last_steps().empty()) ||
                         AllOf(size, {buckets.first_steps_size(), buckets.last_steps_size()});
  return steps_fit &&
         AllOf(size, {buckets.last_times_unix_ns_size(), buckets.min_size(), buckets.max_size(),
                      buckets.avg_size(), buckets.first_size(), buckets.last_size(),
                      buckets.counts_size(), buckets.non_finite_size()});
}

}  // namespace

absl::Status CheckColumns(const v1::RangeResponse& response) {
  if (GoodPoints(response.points()) && GoodBuckets(response.buckets())) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the collector sent columns of different lengths for series ",
                   response.series_index(), "; is it of another version?"));
}

Point PointAt(const v1::Points& points, int index) {
  return {.time_unix_ns = points.times_unix_ns(index),
          .step = StepAt(points.steps(), index),
          .value = points.values(index),
          .attempt = points.attempts().empty() ? 0 : points.attempts(index)};
}

Bucket BucketAt(const v1::Buckets& buckets, int index) {
  return {.first_time_unix_ns = buckets.first_times_unix_ns(index),
          .last_time_unix_ns = buckets.last_times_unix_ns(index),
          .first_step = StepAt(buckets.first_steps(), index),
          .last_step = StepAt(buckets.last_steps(), index),
          .min = buckets.min(index),
          .max = buckets.max(index),
          .avg = buckets.avg(index),
          .first = buckets.first(index),
          .last = buckets.last(index),
          .count = buckets.counts(index),
          .non_finite = buckets.non_finite(index)};
}

Bucket BucketOf(const Point& point) {
  const bool finite = std::isfinite(point.value);
  const double statistic = finite ? point.value : std::numeric_limits<double>::quiet_NaN();
  return {.first_time_unix_ns = point.time_unix_ns,
          .last_time_unix_ns = point.time_unix_ns,
          .first_step = point.step,
          .last_step = point.step,
          .min = statistic,
          .max = statistic,
          .avg = statistic,
          .first = point.value,
          .last = point.value,
          .count = 1,
          .non_finite = finite ? 0U : 1U};
}

std::vector<std::pair<std::string, std::string>> LabelsOf(const v1::SeriesInfo& series) {
  std::vector<std::pair<std::string, std::string>> labels;
  if (series.has_task()) labels.emplace_back("task", absl::StrCat(series.task()));
  if (!series.host().empty()) labels.emplace_back("host", series.host());
  for (auto& label : OwnLabelPairs(series)) labels.push_back(std::move(label));
  return labels;
}

std::vector<std::pair<std::string, std::string>> OwnLabelPairs(const v1::SeriesInfo& series) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (const v1::Label& label : series.labels()) labels.emplace_back(label.name(), label.value());
  return labels;
}

std::string OwnLabels(const v1::SeriesInfo& series) {
  std::string text;
  for (const v1::Label& label : series.labels()) {
    absl::StrAppend(&text, text.empty() ? "" : ",", label.name(), "=", label.value());
  }
  return text;
}

std::string FullName(const v1::SeriesInfo& series) {
  std::string labels;
  for (const auto& [name, value] : LabelsOf(series)) {
    absl::StrAppend(&labels, labels.empty() ? "" : ",", name, "=\"", value, "\"");
  }
  return labels.empty() ? series.metric().name()
                        : absl::StrCat(series.metric().name(), "{", labels, "}");
}

std::vector<std::string> ShortNames(const std::vector<const v1::SeriesInfo*>& series) {
  std::set<std::string> metrics;
  std::map<std::string, std::map<std::string, size_t>> values;  // By label name.
  for (const v1::SeriesInfo* info : series) {
    metrics.insert(info->metric().name());
    for (const auto& [name, value] : LabelsOf(*info)) ++values[name][value];
  }
  const auto tells_apart = [&](const std::string& name) {
    const auto& counts = values[name];
    return counts.size() > 1 || counts.begin()->second != series.size();
  };
  // A task runs on one host: the host would only repeat what the task says.
  const bool task_is_enough = values.count("task") > 0 && tells_apart("task") &&
                              values["task"].size() >= values["host"].size();
  std::vector<std::string> names;
  for (const v1::SeriesInfo* info : series) {
    std::string short_name = metrics.size() > 1 ? info->metric().name() : "";
    for (const auto& [name, value] : LabelsOf(*info)) {
      if (!tells_apart(name) || (name == "host" && task_is_enough && info->has_task())) continue;
      absl::StrAppend(&short_name, short_name.empty() ? "" : " ", name, " ", value);
    }
    names.push_back(short_name.empty() ? info->metric().name() : short_name);
  }
  // Perhaps only the hosts left out above distinguished two series.
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size()) {
    for (size_t i = 0; i < series.size(); ++i) names[i] = FullName(*series[i]);
  }
  return names;
}

std::string TypeName(v1::MetricType type) {
  switch (type) {
    case v1::METRIC_TYPE_GAUGE:
      return "gauge";
    case v1::METRIC_TYPE_COUNTER:
      return "counter";
    case v1::METRIC_TYPE_HISTOGRAM:
      return "histogram";
    default:
      return "";
  }
}

}  // namespace tacho::ctl
