#include "server/metrics/metric_families.h"

#include <utility>

#include "proto/base/check.h"

namespace tacho::server::metrics {
namespace {

prometheus::MetricType TypeOf(const MetricInfo& info) {
  if (info.type == "counter") return prometheus::MetricType::Counter;
  if (info.type == "gauge") return prometheus::MetricType::Gauge;
  if (info.type == "summary") return prometheus::MetricType::Summary;
  TACHO_CHECK(info.type == "histogram");
  return prometheus::MetricType::Histogram;
}

template <typename Builder>
auto& Register(prometheus::Registry* registry, Metric metric, prometheus::MetricType type,
               Builder builder) {
  TACHO_CHECK(registry != nullptr && TypeOf(metric.info()) == type);
  return builder.Name(std::string(metric.info().name)).Help(metric.Help()).Register(*registry);
}

}  // namespace

prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry* registry,
                                                       Metric metric) {
  return Register(registry, metric, prometheus::MetricType::Counter, prometheus::BuildCounter());
}

prometheus::Family<prometheus::Gauge>& GaugeFamily(prometheus::Registry* registry, Metric metric) {
  return Register(registry, metric, prometheus::MetricType::Gauge, prometheus::BuildGauge());
}

prometheus::Family<prometheus::Histogram>& HistogramFamily(prometheus::Registry* registry,
                                                           Metric metric) {
  return Register(registry, metric, prometheus::MetricType::Histogram,
                  prometheus::BuildHistogram());
}

prometheus::Counter& NewCounter(prometheus::Registry* registry, Metric metric,
                                const prometheus::Labels& labels) {
  return CounterFamily(registry, metric).Add(labels);
}

prometheus::Gauge& NewGauge(prometheus::Registry* registry, Metric metric,
                            const prometheus::Labels& labels) {
  return GaugeFamily(registry, metric).Add(labels);
}

prometheus::Histogram& NewHistogram(prometheus::Registry* registry, Metric metric,
                                    const prometheus::Histogram::BucketBoundaries& boundaries) {
  return HistogramFamily(registry, metric).Add({}, boundaries);
}

prometheus::MetricFamily EmptyFamily(Metric metric) {
  return {std::string(metric.info().name), metric.Help(), TypeOf(metric.info()), {}};
}

void AddLine(std::vector<prometheus::ClientMetric::Label> labels, double value,
             prometheus::MetricFamily* family) {
  const bool counts = family->type == prometheus::MetricType::Counter;
  TACHO_CHECK(counts || family->type == prometheus::MetricType::Gauge);
  prometheus::ClientMetric& metric = family->metric.emplace_back();
  metric.label = std::move(labels);
  (counts ? metric.counter.value : metric.gauge.value) = value;
}

prometheus::MetricFamily OneLine(Metric metric, double value) {
  prometheus::MetricFamily family = EmptyFamily(metric);
  AddLine({}, value, &family);
  return family;
}

SectionFamilies::SectionFamilies(std::span<const MetricInfo> section) : section_(section) {
  for (const MetricInfo& info : section_) families_.push_back(EmptyFamily(Metric(info)));
}

void SectionFamilies::Add(Metric metric, std::vector<prometheus::ClientMetric::Label> labels,
                          std::optional<double> value) {
  if (value.has_value()) AddLine(std::move(labels), *value, Find(metric));
}

void SectionFamilies::AddSummary(Metric metric, std::vector<prometheus::ClientMetric::Label> labels,
                                 const prometheus::ClientMetric::Summary& summary) {
  prometheus::ClientMetric& line = Find(metric)->metric.emplace_back();
  line.label = std::move(labels);
  line.summary = summary;
}

std::vector<prometheus::MetricFamily> SectionFamilies::Take() {
  std::erase_if(families_,
                [](const prometheus::MetricFamily& family) { return family.metric.empty(); });
  return std::move(families_);
}

prometheus::MetricFamily* SectionFamilies::Find(Metric metric) {
  size_t index = 0;
  while (index < section_.size() && &section_[index] != &metric.info()) ++index;
  TACHO_CHECK(index < section_.size());
  return &families_[index];
}

}  // namespace tacho::server::metrics
