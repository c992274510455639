#include "server/interop/otlp_http.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "interop/google_rpc.pb.h"
#include "proto/base/json_text.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/interop/arena_messages.h"
#include "server/interop/formats/packed_body.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::interop {
namespace {

constexpr char kProtobuf[] = "application/x-protobuf";
constexpr char kJson[] = "application/json";

// A parsed request takes ten times its bytes, and a hostile one twenty-five times. Exporters send
// some 8,192 points at once, which are one or two megabytes.
constexpr size_t kMaxBytes = size_t{8} << 20;
// A request needs thirteen, and the values of attributes some more.
constexpr int kMaxJsonLevels = 32;

bool IsJson(const http::HttpRequest& request) {
  return absl::StartsWithIgnoreCase(request.Header("content-type"), kJson);
}

// As the request's form is.
http::HttpResponse WriteMessage(const google::protobuf::Message& message, bool json,
                                http::HttpResponse response) {
  response.content_type = json ? kJson : kProtobuf;
  if (!json) {
    response.body = message.SerializeAsString();
    return response;
  }
  response.body.clear();
  if (!google::protobuf::util::MessageToJsonString(message, &response.body).ok()) {
    response.body = "{}";
  }
  return response;
}

absl::Status BytesOfJson(const std::string& body, const google::protobuf::Message& kind,
                         std::string* bytes) {
  if (IsJsonNested(body, kMaxJsonLevels)) {
    return errors::ErrorOf(errors::Failure::kMalformed,
                           absl::StrCat("the body has more than ", kMaxJsonLevels,
                                        " objects and arrays in each other"));
  }
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  google::protobuf::Arena arena(RequestArena());
  google::protobuf::Message* const message = kind.New(&arena);
  const auto parsed = google::protobuf::util::JsonStringToMessage(body, message, options);
  if (parsed.ok() && message->SerializeToString(bytes)) return absl::OkStatus();
  return errors::ErrorOf(errors::Failure::kMalformed,
                         absl::StrCat("the body is no ", message->GetDescriptor()->name(),
                                      " in JSON: ", std::string(parsed.message())));
}

}  // namespace

size_t MaxOtlpBytes(const config::v1::Interop& config) {
  return std::min<size_t>(config.max_request_bytes(), kMaxBytes);
}

http::Route OtlpRoute(
    std::string path, size_t max_bytes,
    std::function<void(const http::HttpRequest&, const http::ResponderPtr&)> handle) {
  http::Route route;
  route.path = std::move(path);
  route.methods = http::Methods::kPost;
  route.max_body = max_bytes;
  route.takes_chunks = true;  // SDKs in JavaScript do not know the length when they begin.
  route.later = [handle = std::move(handle)](http::HttpRequest request,
                                             http::ResponderPtr responder) {
    handle(request, responder);
  };
  return route;
}

absl::StatusOr<OtlpCaller> AdmitOtlpCall(const http::HttpGuard& guard, const Intake& intake,
                                         const grpc::CallbackServerContext& context) {
  TACHO_ASSIGN_OR_RETURN(const auto caller,
                         security::AdmitCall(guard.access, context, security::Role::kWrite));
  TACHO_RETURN_IF_ERROR(intake.CheckOpen());
  security::Credentials shown = security::CredentialsOf(context);
  shown.peer.resize(std::min(shown.peer.size(), shown.peer.rfind(':')));  // "ipv4:10.0.0.7:4711".
  return OtlpCaller{.sender = {"otlp", std::move(shown), caller.rights_ptr()}};
}

std::optional<OtlpCaller> ReadOtlpRequest(const http::HttpGuard& guard, const Intake& intake,
                                          size_t max_bytes, const http::HttpRequest& request,
                                          const http::ResponderPtr& responder,
                                          const google::protobuf::Message& kind,
                                          std::string* bytes) {
  const auto caller = http::AdmitRequest(guard, request, security::Role::kWrite);
  if (!caller.ok()) {
    responder->Answer(http::CallerRefusal(caller.status()));
    return std::nullopt;
  }
  const bool json = IsJson(request);
  if (!json && !absl::StartsWithIgnoreCase(request.Header("content-type"), kProtobuf)) {
    http::HttpResponse response{.status = 415};
    response.body = absl::StrCat("Content-Type: ", kProtobuf, " or ", kJson, " is taken here\n");
    responder->Answer(std::move(response));
    return std::nullopt;
  }
  absl::Status status = intake.CheckOpen();
  if (status.ok()) {
    auto body = UnpackEncoded(request.Header("content-encoding"), request.body, max_bytes);
    if (!body.ok()) {
      status = body.status();
    } else if (json) {
      status = BytesOfJson(*body, kind, bytes);
    } else {
      *bytes = *std::move(body);
    }
  }
  if (!status.ok()) {
    responder->Answer(OtlpAnswer(status, kind, json));
    return std::nullopt;
  }
  return OtlpCaller{.sender = {"otlp", request.credentials, caller->rights_ptr()}, .json = json};
}

absl::Status ParseOtlp(absl::string_view bytes, google::protobuf::Message* message) {
  if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::OkStatus();
  return errors::ErrorOf(
      errors::Failure::kMalformed,
      absl::StrCat("the body is no ", message->GetDescriptor()->name(), " in protobuf"));
}

http::HttpResponse OtlpAnswer(const absl::Status& status, const google::protobuf::Message& response,
                              bool json) {
  if (status.ok()) return WriteMessage(response, json, {});
  google::rpc::Status told;
  told.set_code(static_cast<int>(status.code()));
  told.set_message(std::string(status.message()));
  return WriteMessage(told, json, http::ErrorResponse(status));
}

}  // namespace tacho::server::interop
