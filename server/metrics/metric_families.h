// Makes families of prometheus-cpp from rows of the table: their name, help and type stand there
// and nowhere else. A Metric of another type than the function's ends the process.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

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

}  // namespace tacho::server::metrics
