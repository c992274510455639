// Requests of OpenTelemetry's OTLP with metrics (open-telemetry/opentelemetry-proto,
// opentelemetry/proto/metrics/v1/metrics.proto). Pure.
//
//   job, host         resource: service.name, host.name
//   task, attempt     resource: tacho.task, tacho.attempt, whole numbers
//   labels            attributes of the point
//   counter, bucket   cumulative monotonic Sum without a start, which is not known
//   gauge             Gauge
//   stale marker      a point without a value, with the flag NO_RECORDED_VALUE
//
// A collector of ours that receives it with the configuration that is built in stores the same job,
// host, task, attempt, metric, labels, times and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/forward/write_request.h"
#include "storage/model/series.h"

namespace tacho::server::forward {

// A series as it is told. The name of the metric need not be one of Prometheus.
struct OtlpNames {
  absl::string_view metric;
  absl::string_view job;
  std::optional<uint32_t> task;
  std::optional<uint32_t> attempt;
  absl::string_view host;  // Empty: it has none.
  storage::Labels labels;
};

// `type`, `unit` and `help` are those of the metric.
OtlpText OtlpTextOf(const OtlpNames& names, storage::MetricType type, absl::string_view unit,
                    absl::string_view help);

// The bytes of an ExportMetricsServiceRequest, of series that have an OtlpText and times in ns.
// Bits of values as recorded.
std::string EncodeOtlp(const WriteBatch& batch);

}  // namespace tacho::server::forward
