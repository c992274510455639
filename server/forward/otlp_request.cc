// Writes the messages by hand, as write_request.cc does: all that a series adds to its points is
// made once, so that a sample costs little more than the copy of its attributes.
#include "server/forward/otlp_request.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "server/forward/message_bytes.h"
#include "storage/codec/bytes.h"

namespace tacho::server::forward {
namespace {

// Tags: field number × 8 + wire type.
constexpr char kOtlpResourceMetrics = 0x0a;  // ExportMetricsServiceRequest.resource_metrics
constexpr char kOtlpResource = 0x0a;         // ResourceMetrics.resource
constexpr char kOtlpScopeMetrics = 0x12;     // ResourceMetrics.scope_metrics
constexpr char kOtlpMetric = 0x12;           // ScopeMetrics.metrics
constexpr char kOtlpName = 0x0a;             // Metric.name
constexpr char kOtlpDescription = 0x12;      // Metric.description
constexpr char kOtlpUnit = 0x1a;             // Metric.unit
constexpr char kOtlpGauge = 0x2a;            // Metric.gauge
constexpr char kOtlpSum = 0x3a;              // Metric.sum
constexpr char kOtlpPoint = 0x0a;            // Gauge.data_points, Sum.data_points
constexpr char kOtlpTime = 0x19;             // NumberDataPoint.time_unix_nano
constexpr char kOtlpValue = 0x21;            // NumberDataPoint.as_double
constexpr char kOtlpPointAttribute = 0x3a;   // NumberDataPoint.attributes
constexpr char kOtlpResourceAttribute = 0x0a;
constexpr char kOtlpKey = 0x0a;             // KeyValue.key
constexpr char kOtlpAttributeValue = 0x12;  // KeyValue.value
constexpr char kOtlpString = 0x0a;          // AnyValue.string_value
constexpr char kOtlpInteger = 0x18;         // AnyValue.int_value
// Sum.aggregation_temporality = CUMULATIVE, Sum.is_monotonic = true.
constexpr absl::string_view kCumulativeMonotonic("\x10\x02\x18\x01", 4);

// NumberDataPoint.flags = NO_RECORDED_VALUE.
constexpr absl::string_view kOtlpNoRecordedValue("\x40\x01", 2);
constexpr size_t kOtlpTimeBytes = 1 + sizeof(uint64_t);  // A value takes as many.

void AppendAttribute(char tag, absl::string_view key, absl::string_view any_value,
                     std::string* out) {
  std::string attribute;
  AppendMessage(kOtlpKey, key, &attribute);
  AppendMessage(kOtlpAttributeValue, any_value, &attribute);
  AppendMessage(tag, attribute, out);
}

std::string StringValue(absl::string_view text) {
  std::string value;
  AppendMessage(kOtlpString, text, &value);
  return value;
}

std::string IntegerValue(uint64_t number) {
  std::string value(1, kOtlpInteger);
  storage::PutVarint(number, &value);
  return value;
}

// The receiver finds job, host, task and attempt by these names before all others
// (server/interop/formats/label_mapping.cc), so a label must not have them.
std::string PointAttribute(absl::string_view label) {
  const bool taken = label == "tacho_job" || label == "tacho_host" || label == "tacho_task" ||
                     label == "tacho_attempt";
  return absl::StrCat(taken ? "exported_" : "", label);
}

void AppendPoint(const OtlpText& text, const WriteSample& sample, std::string* out) {
  const bool ends = IsStaleMarker(sample.value);
  const size_t rest = ends ? kOtlpTimeBytes + kOtlpNoRecordedValue.size() : 2 * kOtlpTimeBytes;
  out->push_back(kOtlpPoint);
  storage::PutVarint(text.attributes.size() + rest, out);
  out->append(text.attributes);
  out->push_back(kOtlpTime);
  storage::PutLe64(static_cast<uint64_t>(sample.time), out);
  if (ends) {
    out->append(kOtlpNoRecordedValue.data(), kOtlpNoRecordedValue.size());
  } else {
    out->push_back(kOtlpValue);
    storage::PutLe64(std::bit_cast<uint64_t>(sample.value), out);
  }
}

// The points of a metric of a resource.
struct OtlpMetricPoints {
  const OtlpText* text = nullptr;
  std::string points;
};

struct OtlpResource {
  absl::string_view bytes;
  std::vector<OtlpMetricPoints> metrics;
  absl::flat_hash_map<std::pair<absl::string_view, bool>, size_t> places;
};

void AppendResource(const OtlpResource& resource, std::string* out) {
  std::string metrics, metric;
  for (const OtlpMetricPoints& one : resource.metrics) {
    metric = one.text->metric;
    std::string data = one.points;
    if (one.text->grows) data.append(kCumulativeMonotonic.data(), kCumulativeMonotonic.size());
    AppendMessage(one.text->grows ? kOtlpSum : kOtlpGauge, data, &metric);
    AppendMessage(kOtlpMetric, metric, &metrics);
  }
  std::string body;
  AppendMessage(kOtlpResource, resource.bytes, &body);
  AppendMessage(kOtlpScopeMetrics, metrics, &body);
  AppendMessage(kOtlpResourceMetrics, body, out);
}

}  // namespace

OtlpText OtlpTextOf(const OtlpNames& names, storage::MetricType type, absl::string_view unit,
                    absl::string_view help) {
  OtlpText text;
  // A label of the point hides an attribute of the resource that becomes the same label.
  const auto has = [&names](absl::string_view label) {
    return std::any_of(names.labels.begin(), names.labels.end(),
                       [label](const auto& one) { return one.first == label; });
  };
  const auto resource = [&text](absl::string_view key, absl::string_view value) {
    AppendAttribute(kOtlpResourceAttribute, key, value, &text.resource);
  };
  resource(has("service_name") ? "tacho.job" : "service.name", StringValue(names.job));
  if (!names.host.empty()) {
    resource(has("host_name") ? "tacho.host" : "host.name", StringValue(names.host));
  }
  if (names.task) resource("tacho.task", IntegerValue(*names.task));
  if (names.attempt) resource("tacho.attempt", IntegerValue(*names.attempt));
  for (const auto& [label, value] : names.labels) {
    AppendAttribute(kOtlpPointAttribute, PointAttribute(label), StringValue(value),
                    &text.attributes);
  }
  AppendMessage(kOtlpName, names.metric, &text.metric);
  if (!help.empty()) AppendMessage(kOtlpDescription, help, &text.metric);
  if (!unit.empty()) AppendMessage(kOtlpUnit, unit, &text.metric);
  text.grows = type != storage::MetricType::kGauge;
  return text;
}

std::string EncodeOtlp(const WriteBatch& batch) {
  std::vector<OtlpResource> resources;
  absl::flat_hash_map<absl::string_view, size_t> places;
  for (const WriteBatch::Series& series : batch.series()) {
    const OtlpText& text = *series.text->otlp;
    const auto [place, fresh] = places.try_emplace(text.resource, resources.size());
    if (fresh) resources.emplace_back().bytes = text.resource;
    OtlpResource& resource = resources[place->second];
    const std::pair key(absl::string_view(text.metric), text.grows);
    const auto [metric, unseen] = resource.places.try_emplace(key, resource.metrics.size());
    if (unseen) resource.metrics.emplace_back().text = &text;
    std::string& points = resource.metrics[metric->second].points;
    for (const WriteSample& sample : series.samples) AppendPoint(text, sample, &points);
  }
  std::string message;
  for (const OtlpResource& resource : resources) AppendResource(resource, &message);
  return message;
}

}  // namespace tacho::server::forward
