#include "server/bridge/connect_answer.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "interop/google_rpc.pb.h"
#include "proto/base/json_text.h"
#include "proto/base/status_macros.h"
#include "proto/rpc/retry_delay.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::bridge {
namespace {

// In the order of gRPC's codes: https://connectrpc.com/docs/protocol#error-codes.
constexpr struct {
  absl::string_view name;
  int http;
} kCodes[] = {
    {"unknown", 500},  // OK, which is no error.
    {"canceled", 499},
    {"unknown", 500},
    {"invalid_argument", 400},
    {"deadline_exceeded", 504},
    {"not_found", 404},
    {"already_exists", 409},
    {"permission_denied", 403},
    {"resource_exhausted", 429},
    {"failed_precondition", 400},
    {"aborted", 409},
    {"out_of_range", 400},
    {"unimplemented", 501},
    {"internal", 500},
    {"unavailable", 503},
    {"data_loss", 500},
    {"unauthenticated", 401},
};

const auto& RowOf(grpc::StatusCode code) {
  return kCodes[code >= 0 && code < std::ssize(kCodes) ? code : 0];
}

absl::StatusOr<std::string> ToJson(const google::protobuf::Descriptor& type,
                                   absl::string_view bytes) {
  const std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->New());
  std::string json;
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      !google::protobuf::util::MessageToJsonString(*message, &json).ok()) {
    return errors::ErrorOf(errors::Failure::kInternal,
                           absl::StrCat("a ", type.full_name(), " has no form in JSON"));
  }
  return json;
}

google::rpc::Status RichStatus(const grpc::Status& status) {
  google::rpc::Status rich;
  if (!rich.ParseFromString(status.error_details())) rich.Clear();
  return rich;
}

// Its value without padding, and as JSON if its type is one of ours.
std::string DetailJson(const google::protobuf::Any& detail) {
  const std::string type(absl::StripPrefix(detail.type_url(), "type.googleapis.com/"));
  std::string value = absl::Base64Escape(detail.value());
  while (absl::EndsWith(value, "=")) value.pop_back();
  std::string json = absl::StrCat("{\"type\":", JsonString(type), ",\"value\":", JsonString(value));
  const auto* const known =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(type);
  if (known == nullptr) return absl::StrCat(json, "}");
  const auto debug = ToJson(*known, detail.value());
  return debug.ok() ? absl::StrCat(json, ",\"debug\":", *debug, "}") : absl::StrCat(json, "}");
}

std::string ErrorJson(const grpc::Status& status) {
  std::string json = absl::StrCat("{\"code\":", JsonString(RowOf(status.error_code()).name),
                                  ",\"message\":", JsonString(status.error_message()));
  const google::rpc::Status rich = RichStatus(status);
  if (!rich.details().empty()) {
    const auto append = [](std::string* out, const google::protobuf::Any& detail) {
      absl::StrAppend(out, DetailJson(detail));
    };
    absl::StrAppend(&json, ",\"details\":[", absl::StrJoin(rich.details(), ",", append), "]");
  }
  return absl::StrCat(json, "}");
}

std::string Envelope(uint8_t flags, absl::string_view message) {
  const auto size = static_cast<uint32_t>(message.size());
  std::string bytes;
  bytes.reserve(message.size() + 5);
  bytes.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(size >> shift));
  bytes.append(message.data(), message.size());
  return bytes;
}

constexpr uint8_t kEndOfStream = 2;

}  // namespace

int HttpStatusOf(grpc::StatusCode code) { return RowOf(code).http; }

http::HttpResponse ErrorAnswer(const grpc::Status& status) {
  http::HttpResponse answer;
  answer.status = HttpStatusOf(status.error_code());
  answer.content_type = "application/json";
  answer.body = ErrorJson(status);
  if (const auto delay = RetryDelay(status); delay.has_value()) {
    // Whole seconds are all that the header can say.
    const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(*delay, absl::Seconds(1)));
    answer.headers.emplace_back("Retry-After", absl::StrCat(std::max<int64_t>(1, seconds)));
  }
  return answer;
}

http::HttpResponse UnaryAnswer(const ConnectCall& call, std::string message) {
  http::HttpResponse answer;
  if (call.codec == Codec::kProto) {
    answer.content_type = "application/proto";
    answer.body = std::move(message);
  } else {
    auto json = ToJson(*call.method->output_type(), message);
    if (!json.ok()) return ErrorAnswer(errors::ToGrpcStatus(json.status()));
    answer.content_type = "application/json";
    answer.body = *std::move(json);
  }
  return answer;
}

http::HttpResponse StreamHead(const ConnectCall& call) {
  http::HttpResponse head;
  head.content_type = call.framing == Framing::kLines ? "application/x-ndjson"
                      : call.codec == Codec::kJson    ? "application/connect+json"
                                                      : "application/connect+proto";
  return head;
}

absl::StatusOr<std::string> StreamMessage(const ConnectCall& call, absl::string_view message) {
  if (call.codec == Codec::kProto) return Envelope(0, message);
  TACHO_ASSIGN_OR_RETURN(const std::string json, ToJson(*call.method->output_type(), message));
  return call.framing == Framing::kLines ? absl::StrCat(json, "\n") : Envelope(0, json);
}

std::string StreamEnd(const ConnectCall& call, const grpc::Status& status) {
  const std::string json = status.ok() ? "{}" : absl::StrCat("{\"error\":", ErrorJson(status), "}");
  if (call.framing == Framing::kEnvelopes) return Envelope(kEndOfStream, json);
  return status.ok() ? std::string() : absl::StrCat(json, "\n");
}

}  // namespace tacho::server::bridge
