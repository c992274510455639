#include "client/ctl/text/series_name.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace tacho::ctl {

std::vector<std::pair<std::string, std::string>> LabelsOf(const v1::SeriesInfo& series) {
  std::vector<std::pair<std::string, std::string>> labels;
  if (series.has_task()) labels.emplace_back("task", absl::StrCat(series.task()));
  if (!series.host().empty()) labels.emplace_back("host", series.host());
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
  // Hosts left out above may have been what told two series apart.
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
