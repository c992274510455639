#include "proto/rpc/retry_delay.h"

#include "interop/google_rpc.pb.h"

namespace tacho {

std::optional<absl::Duration> RetryDelay(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  for (const auto& detail : details.details()) {
    google::rpc::RetryInfo info;
    if (!detail.Is<google::rpc::RetryInfo>() || !detail.UnpackTo(&info)) continue;
    return absl::Seconds(info.retry_delay().seconds()) +
           absl::Nanoseconds(info.retry_delay().nanos());
  }
  return std::nullopt;
}

}  // namespace tacho
