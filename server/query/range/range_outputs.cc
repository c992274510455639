#include "server/query/range/range_outputs.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

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
