// Attributes of OpenTelemetry as texts and labels, for all of its signals
// (open-telemetry/opentelemetry-proto, opentelemetry/proto/common/v1/common.proto).
#pragma once

#include <string>
#include <vector>

#include "interop/otlp_common.pb.h"
#include "interop/otlp_resource.pb.h"
#include "server/interop/formats/otlp_values.h"
#include "storage/model/series.h"

namespace tacho::server::interop {

// As OtlpValueText().
std::string AttributeText(const opentelemetry::proto::common::v1::AnyValue& value);

// Two names may become one, whose values are joined by ";" then, as OpenTelemetry's rules for
// Prometheus have it (specification/compatibility/prometheus_and_openmetrics.md).
void AddAttribute(const OtlpAttribute& attribute, storage::Labels* labels);

// The attributes whose names are in `wanted` (`interop.otlp_resource_attributes`).
storage::Labels WantedLabels(const opentelemetry::proto::resource::v1::Resource& resource,
                             const std::vector<std::string>& wanted);

}  // namespace tacho::server::interop
