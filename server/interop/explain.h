// Shows what a captured request would become: tacho-collector --explain-mapping.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tacho/config/v1/interop.pb.h"

namespace tacho::server::interop {

// `request` is the body of a request of remote write, 1.0 or 2.0, packed or not, or of
// OpenTelemetry metrics in protobuf, gzip or not. The text has a paragraph for each series, for
// people; every series of the request is in it once.
//   INVALID_ARGUMENT  it is no such request, or a rule of the mapping is wrong.
absl::StatusOr<std::string> ExplainMapping(const config::v1::Interop& config,
                                           absl::string_view request);

}  // namespace tacho::server::interop
