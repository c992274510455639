// A second translator of OpenTelemetry's metrics, slow and plain, for tests that compare the two.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/interop/otlp_metrics.h"

namespace tacho::server::interop {

// As ReadOtlpMetrics(), by way of generated messages.
absl::StatusOr<OtlpMetrics> ReadByMessages(absl::string_view bytes,
                                           const std::vector<std::string>& resource_attributes,
                                           OtlpMemory* memory);

}  // namespace tacho::server::interop
