// What a receiver's answer to a request of OTLP means for its sender
// (open-telemetry/opentelemetry-proto, docs/specification.md, "Failures"). Pure.
#pragma once

#include <cstddef>
#include <string>

#include "grpcpp/support/status.h"
#include "interop/otlp_metrics_service.pb.h"
#include "server/forward/write_answer.h"

namespace tacho::server::forward {

// The rules:
//   OK                  written, but for the points that partial_success counts.
//   CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS
//                       later, and no sooner than RetryInfo.
//   RESOURCE_EXHAUSTED  the same with RetryInfo. Without it the request is too large.
//   UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND, UNIMPLEMENTED
//                       later: what is wrong is a token or an address, not the samples.
//   others              never.
Verdict JudgeOtlp(const grpc::Status& status,
                  const opentelemetry::proto::collector::metrics::v1::ExportMetricsPartialSuccess&
                      partial_success,
                  size_t samples);

// The name of a status, as documents of gRPC have it: "UNAVAILABLE".
std::string NameOfCode(grpc::StatusCode code);

}  // namespace tacho::server::forward
