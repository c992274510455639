// The points of OpenTelemetry's metrics in the bytes of a request, without generated messages:
// those cost more than all that follows (open-telemetry/opentelemetry-proto,
// opentelemetry/proto/metrics/v1/metrics.proto).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/interop/formats/otlp_values.h"

namespace tacho::server::interop {

// A point of any kind, with the fields that its kind has. Points into the request. To be used again
// for the next one, so that its lists are allocated once.
struct OtlpPoint {
  static constexpr size_t kMaxAttributes = 128;

  struct Buckets {
    int32_t offset = 0;
    size_t count = 0;
    std::vector<uint64_t> counts;  // No more than are taken; `count` has them all.
  };
  enum class Value { kNone, kReal, kWhole };

  size_t attribute_count = 0;
  std::vector<OtlpAttribute> attributes;  // No more than kMaxAttributes.
  uint64_t start_ns = 0;
  uint64_t time_ns = 0;
  uint32_t flags = 0;
  uint64_t exemplars = 0;
  // NumberDataPoint.
  Value value = Value::kNone;
  double real = 0;
  int64_t whole = 0;
  // Histograms and summaries.
  uint64_t count = 0;
  std::optional<double> sum;
  std::optional<double> min;
  std::optional<double> max;
  std::vector<uint64_t> bucket_counts;
  std::vector<double> bounds;
  int32_t scale = 0;
  uint64_t zero_count = 0;
  double zero_threshold = 0;
  Buckets positive;
  Buckets negative;
  std::vector<std::pair<double, double>> quantiles;  // And their values.
};

// A metric and the messages of its points.
struct OtlpMetric {
  // The field of the oneof `data`; 0: it is not set.
  enum Kind : uint32_t {
    kNone = 0,
    kGauge = 5,
    kSum = 7,
    kHistogram = 9,
    kExponential = 10,
    kSummary = 11
  };
  absl::string_view name;
  absl::string_view description;
  absl::string_view unit;
  Kind kind = kNone;
  bool delta = false;
  bool monotonic = false;
  std::vector<absl::string_view> points;
};

// Both check all that is in the message. False if the bytes are no such message, hold text that is
// not UTF-8 or nest too deep, or if a metric has its data twice, which protobuf would merge.
bool ReadOtlpMetric(absl::string_view message, OtlpMetric* metric);
bool ReadOtlpPoint(absl::string_view message, OtlpMetric::Kind kind, OtlpPoint* point);

}  // namespace tacho::server::interop
