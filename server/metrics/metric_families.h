// Makes families of prometheus-cpp from rows of the table: their name, help and type stand there
// and nowhere else. A Metric of another type than the function's ends the process.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <optional>
#include <span>
#include <vector>

#include "server/metrics/metric_table.h"

namespace tacho::server::metrics {

// In a registry, for what is counted as it happens. Asking twice returns the same object. The
// registry is not owned and must outlive it.
prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry* registry,
                                                       Metric metric);
prometheus::Family<prometheus::Gauge>& GaugeFamily(prometheus::Registry* registry, Metric metric);
prometheus::Family<prometheus::Histogram>& HistogramFamily(prometheus::Registry* registry,
                                                           Metric metric);
prometheus::Counter& NewCounter(prometheus::Registry* registry, Metric metric,
                                const prometheus::Labels& labels = {});
prometheus::Gauge& NewGauge(prometheus::Registry* registry, Metric metric,
                            const prometheus::Labels& labels = {});
prometheus::Histogram& NewHistogram(prometheus::Registry* registry, Metric metric,
                                    const prometheus::Histogram::BucketBoundaries& boundaries);

// For what is read when a scrape asks for it: a family of any type without lines.
prometheus::MetricFamily EmptyFamily(Metric metric);
// Adds a line to a family of counters or gauges.
void AddLine(std::vector<prometheus::ClientMetric::Label> labels, double value,
             prometheus::MetricFamily* family);
// A family of one line without labels.
prometheus::MetricFamily OneLine(Metric metric, double value);

// The families of one section of the table, in its order, while lines are added to them.
class SectionFamilies {
 public:
  explicit SectionFamilies(std::span<const MetricInfo> section);

  // A metric of another section ends the process. Without a value there is no line.
  void Add(Metric metric, std::vector<prometheus::ClientMetric::Label> labels,
           std::optional<double> value);
  void AddSummary(Metric metric, std::vector<prometheus::ClientMetric::Label> labels,
                  const prometheus::ClientMetric::Summary& summary);
  // Those with a line.
  std::vector<prometheus::MetricFamily> Take();

 private:
  prometheus::MetricFamily* Find(Metric metric);

  const std::span<const MetricInfo> section_;
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace tacho::server::metrics
