#include "server/interop/explain.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/formats/packed_body.h"
#include "server/interop/formats/prometheus_write.h"
#include "server/interop/otlp_metrics.h"
#include "server/limits/limit_text.h"

namespace tacho::server::interop {
namespace {

// A request of OpenTelemetry has its resources in field 1. One of remote write is none: the bytes
// of its labels' names are no messages. A request of 1.0 has its series in field 1, which 2.0
// reserves, and one of 2.0 in field 5.
absl::StatusOr<ForeignWrite> Read(const config::v1::Interop& config, absl::string_view message) {
  OtlpMemory memory(config.max_series());
  auto otlp = ReadOtlpMetrics(
      message, {config.otlp_resource_attributes().begin(), config.otlp_resource_attributes().end()},
      &memory);
  if (otlp.ok() && !otlp->write.series.empty()) return std::move(otlp->write);
  auto first = ReadWriteRequest1(message);
  if (first.ok() && (!first->series.empty() || !first->metrics.empty())) return first;
  auto second = ReadWriteRequest2(message);
  if (second.ok() && !second->series.empty()) return second;
  std::string why = "it has no series";
  if (!second.ok()) why = absl::StrCat("as remote write 2.0: ", second.status().message());
  if (!first.ok()) why = absl::StrCat("as remote write 1.0: ", first.status().message());
  return absl::InvalidArgumentError(absl::StrCat(
      "it is no request of remote write or of OpenTelemetry metrics in protobuf; ", why));
}

std::string Text(absl::string_view metric, const storage::Labels& labels) {
  storage::SeriesDefinition series;
  series.metric.name = std::string(metric);
  series.labels = labels;
  return limits::DescribeSeries(series);
}

std::string Paragraph(const storage::Labels& sent, const absl::StatusOr<MappedSeries>& mapped) {
  std::string text = absl::StrCat(Text("", sent), "\n");
  if (!mapped.ok()) return absl::StrCat(text, "  refused: ", mapped.status().message(), "\n");
  if (mapped->dropped) return absl::StrCat(text, "  dropped by ", mapped->rule, "\n");
  const storage::Source& source = mapped->source;
  absl::StrAppend(&text, "  job ", source.job, ", host ", source.host);
  if (source.task.has_value()) absl::StrAppend(&text, ", task ", *source.task);
  if (source.attempt > 0) absl::StrAppend(&text, ", attempt ", source.attempt);
  absl::StrAppend(&text, ", by ", mapped->rule, "\n  ", Text(mapped->metric, mapped->labels), "\n");
  return text;
}

}  // namespace

absl::StatusOr<std::string> ExplainMapping(const config::v1::Interop& config,
                                           absl::string_view request) {
  TACHO_ASSIGN_OR_RETURN(const auto mapping, LabelMapping::Create(config));
  auto unpacked = UnpackSnappy(request, config.max_request_bytes());
  if (!unpacked.ok()) unpacked = UnpackGzip(request, config.max_request_bytes());
  TACHO_ASSIGN_OR_RETURN(const ForeignWrite write,
                         Read(config, unpacked.ok() ? absl::string_view(*unpacked) : request));
  std::string text;
  absl::flat_hash_set<absl::string_view> shown;
  for (const ForeignSeries& series : write.series) {
    if (!shown.insert(series.key).second) continue;
    TACHO_ASSIGN_OR_RETURN(storage::Labels labels, LabelsOfKey(series.key));
    absl::StrAppend(&text, Paragraph(labels, mapping->Map(labels)));
  }
  return text;
}

}  // namespace tacho::server::interop
