#include "agent/sources/rows/sample.h"

#include "proto/base/check.h"

namespace tacho::agent {
namespace {

void AppendPart(absl::string_view part, std::string* key) {
  key->push_back('\0');
  key->append(part.data(), part.size());
}

std::string KeyOf(const Metric& metric, const Labels& labels) {
  std::string key = metric.name;
  for (const auto& [name, value] : labels) {
    AppendPart(name, &key);
    AppendPart(value, &key);
  }
  return key;
}

}  // namespace

void Sample::Add(const Metric& metric, absl::string_view label, double value) {
  TACHO_CHECK(metric.label != nullptr);
  Add(metric, Labels{{metric.label, std::string(label)}}, value);
}

void Sample::Add(const Metric& metric, Labels labels, double value) {
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  std::string key = KeyOf(metric, labels);
  if (keys_.contains(key)) return;
  if (entries_.size() >= kMaxSeries) {
    ++left_out_;
    return;
  }
  keys_.insert(key);
  entries_.push_back({&metric, std::move(labels), value, std::move(key)});
}

v1::Layout::Series SeriesOf(const Metric& metric, const Labels& labels) {
  v1::Layout::Series series;
  series.mutable_metric()->set_name(metric.name);
  series.mutable_metric()->set_type(metric.type);
  series.mutable_metric()->set_unit(metric.unit);
  series.mutable_metric()->set_help(metric.help);
  for (const auto& [name, value] : labels) {
    v1::Label* const label = series.add_labels();
    label->set_name(name);
    label->set_value(value);
  }
  return series;
}

std::string KeyOf(const v1::Layout::Series& series) {
  std::string key = series.metric().name();
  for (const v1::Label& label : series.labels()) {
    AppendPart(label.name(), &key);
    AppendPart(label.value(), &key);
  }
  return key;
}

}  // namespace tacho::agent
