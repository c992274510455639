#include "server/forward/otlp_answer.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "proto/rpc/retry_delay.h"

namespace tacho::server::forward {
namespace {

std::optional<absl::Duration> PauseOf(const grpc::Status& status) {
  const auto delay = RetryDelay(status);
  if (!delay.has_value()) return std::nullopt;
  return std::clamp(*delay, absl::ZeroDuration(), kLongestRetryAfter);
}

}  // namespace

Verdict JudgeOtlp(const grpc::Status& status,
                  const opentelemetry::proto::collector::metrics::v1::ExportMetricsPartialSuccess&
                      partial_success,
                  size_t samples) {
  Verdict verdict;
  switch (status.error_code()) {
    case grpc::StatusCode::OK: {
      const int64_t rejected = std::clamp<int64_t>(partial_success.rejected_data_points(), 0,
                                                   static_cast<int64_t>(samples));
      verdict.step = rejected == 0 ? NextStep::kGoOn : NextStep::kLeaveOut;
      verdict.written = samples - static_cast<size_t>(rejected);
      return verdict;
    }
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DATA_LOSS:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::UNIMPLEMENTED:
      verdict.pause = PauseOf(status);
      return verdict;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      verdict.pause = PauseOf(status);
      if (!verdict.pause) verdict.step = NextStep::kSplit;
      return verdict;
    default:
      verdict.step = NextStep::kLeaveOut;
      return verdict;
  }
}

std::string NameOfCode(grpc::StatusCode code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

}  // namespace tacho::server::forward
