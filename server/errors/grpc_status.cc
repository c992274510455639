#include "server/errors/grpc_status.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "interop/google_rpc.pb.h"
#include "server/errors/error_table.h"

namespace tacho::server::errors {
namespace {

constexpr char kTypeUrlPrefix[] = "type.googleapis.com/";

std::string TypeUrl(const google::protobuf::Message& message) {
  return kTypeUrlPrefix + message.GetDescriptor()->full_name();
}

google::rpc::RetryInfo MakeRetryInfo(absl::Duration delay) {
  const int64_t seconds = absl::ToInt64Seconds(delay);
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(seconds);
  info.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(delay - absl::Seconds(seconds))));
  return info;
}

}  // namespace

absl::Status InvalidFieldError(absl::string_view field, absl::string_view problem) {
  google::rpc::BadRequest detail;
  auto* violation = detail.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(std::string(problem));
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", problem));
  status.SetPayload(TypeUrl(detail), absl::Cord(detail.SerializeAsString()));
  return status;
}

grpc::Status ToGrpcStatus(const absl::Status& status, uint64_t spread) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status rich;
  rich.set_code(static_cast<int32_t>(status.code()));
  rich.set_message(std::string(status.message()));
  status.ForEachPayload([&rich](absl::string_view type_url, const absl::Cord& payload) {
    auto* detail = rich.add_details();
    detail->set_type_url(std::string(type_url));
    detail->set_value(std::string(payload));
  });
  if (const auto delay = RetryAfter(status, spread); delay.has_value()) {
    rich.add_details()->PackFrom(MakeRetryInfo(*delay));
  }
  // The canonical codes have the same numbers in Abseil and gRPC.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), rich.message(),
                      rich.details().empty() ? std::string() : rich.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status made(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status rich;
  if (!rich.ParseFromString(status.error_details())) return made;
  for (const auto& detail : rich.details()) {
    if (detail.Is<google::rpc::RetryInfo>()) continue;
    made.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return made;
}

}  // namespace tacho::server::errors
