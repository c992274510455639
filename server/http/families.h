// Metric families of one line, for figures that are read when a scrape asks for them.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <utility>

namespace tacho::server::http {

inline prometheus::MetricFamily GaugeFamily(std::string name, std::string help, double value) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  return {std::move(name), std::move(help), prometheus::MetricType::Gauge, {std::move(metric)}};
}

inline prometheus::MetricFamily CounterFamily(std::string name, std::string help, double value) {
  prometheus::ClientMetric metric;
  metric.counter.value = value;
  return {std::move(name), std::move(help), prometheus::MetricType::Counter, {std::move(metric)}};
}

}  // namespace tacho::server::http
