#include "server/bridge/connect_call.h"

#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "proto/base/json_text.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "server/errors/error_table.h"
#include "tacho/v1/query.pb.h"
#include "tacho/v1/view.pb.h"

namespace tacho::server::bridge {
namespace {

constexpr size_t kEnvelopeBytes = 5;
constexpr size_t kMaxTimeoutDigits = 10;  // The protocol allows no more.
constexpr int kMaxDepth = 32;
constexpr size_t kShownPath = 200;

absl::Status Malformed(absl::string_view text) {
  return errors::ErrorOf(errors::Failure::kMalformed, text);
}

// A Content-Type without its parameters, in lower case.
std::string MediaType(absl::string_view type) {
  return absl::AsciiStrToLower(absl::StripAsciiWhitespace(type.substr(0, type.find(';'))));
}

// False if the type is none of Connect's.
bool ReadContentType(const google::protobuf::MethodDescriptor& method, absl::string_view type,
                     Codec* codec, Framing* framing) {
  const std::string media = MediaType(type);
  *codec = absl::EndsWith(media, "json") ? Codec::kJson : Codec::kProto;
  if (!method.server_streaming()) {
    *framing = Framing::kUnary;
    return media == "application/json" || media == "application/proto";
  }
  *framing = media == "application/json" ? Framing::kLines : Framing::kEnvelopes;
  return media == "application/json" || media == "application/connect+json" ||
         media == "application/connect+proto";
}

absl::Status CheckHeaders(const http::HttpRequest& request, Framing framing) {
  const absl::string_view version = request.Header("connect-protocol-version");
  if (!version.empty() && version != "1") {
    return errors::ErrorOf(errors::Failure::kUnsupported,
                           "Connect-Protocol-Version: only version 1 is served");
  }
  const absl::string_view encoding = request.Header(
      framing == Framing::kEnvelopes ? "connect-content-encoding" : "content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    return errors::ErrorOf(errors::Failure::kUnsupported,
                           "a compressed request: only \"identity\" is served");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<absl::Duration>> ReadTimeout(const http::HttpRequest& request) {
  const absl::string_view text = request.Header("connect-timeout-ms");
  if (text.empty()) return std::nullopt;
  uint64_t milliseconds = 0;
  if (text.size() > kMaxTimeoutDigits || !absl::SimpleAtoi(text, &milliseconds)) {
    return Malformed("Connect-Timeout-Ms must be a number of at most 10 digits");
  }
  return absl::Milliseconds(milliseconds);
}

// The only message of a request in an envelope.
absl::StatusOr<absl::string_view> ReadEnvelope(absl::string_view body) {
  if (body.size() < kEnvelopeBytes) return Malformed("the body is shorter than an envelope");
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(body[i])); };
  if (byte(0) != 0) return Malformed("the envelope has flags, and only 0 is served");
  const uint32_t size = byte(1) << 24 | byte(2) << 16 | byte(3) << 8 | byte(4);
  if (size != body.size() - kEnvelopeBytes) {
    return Malformed(absl::StrCat("the envelope announces ", size, " bytes, and ",
                                  body.size() - kEnvelopeBytes, " follow"));
  }
  return body.substr(kEnvelopeBytes);
}

absl::StatusOr<std::string> FromJson(const google::protobuf::MethodDescriptor& method,
                                     absl::string_view json) {
  if (!IsUtf8(json)) return Malformed("the message is no UTF-8");
  if (IsJsonNested(json, kMaxDepth)) {
    return Malformed(
        absl::StrCat("the message has more than ", kMaxDepth, " objects and arrays in each other"));
  }
  const google::protobuf::Message* const prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.input_type());
  const std::unique_ptr<google::protobuf::Message> message(prototype->New());
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), message.get());
  if (!status.ok()) {
    return Malformed(absl::StrCat("the message is no ", method.input_type()->full_name(),
                                  " in JSON: ", ValidUtf8(std::string(status.message()))));
  }
  return message->SerializeAsString();
}

// The value of one parameter of the query; empty if there is none.
absl::string_view Parameter(const http::HttpRequest& request, absl::string_view name) {
  for (const auto& [key, value] : request.query) {
    if (key == name) return value;
  }
  return "";
}

// Sets codec and framing; returns the message as it came.
absl::StatusOr<std::string> ReadQuery(const http::HttpRequest& request, ConnectCall* call) {
  const absl::string_view encoding = Parameter(request, "encoding");
  if (encoding != "json" && encoding != "proto") {
    return Malformed("encoding: expected \"json\" or \"proto\"");
  }
  call->codec = encoding == "json" ? Codec::kJson : Codec::kProto;
  if (call->method->server_streaming()) {
    if (call->codec != Codec::kJson) return Malformed("encoding: expected \"json\" for a stream");
    call->framing = Framing::kLines;
  }
  const absl::string_view version = Parameter(request, "connect");
  if (!version.empty() && version != "v1") {
    return errors::ErrorOf(errors::Failure::kUnsupported, "connect: only \"v1\" is served");
  }
  const absl::string_view compression = Parameter(request, "compression");
  if (!compression.empty() && compression != "identity") {
    return errors::ErrorOf(errors::Failure::kUnsupported,
                           "compression: only \"identity\" is served");
  }
  std::string message(Parameter(request, "message"));
  if (Parameter(request, "base64") != "1") return message;
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(message, &bytes)) {
    return Malformed("message: no base64 of the URL-safe alphabet");
  }
  return bytes;
}

absl::StatusOr<std::string> ReadBody(const http::HttpRequest& request, ConnectCall* call) {
  if (!ReadContentType(*call->method, request.Header("content-type"), &call->codec,
                       &call->framing)) {
    return Malformed(absl::StrCat("Content-Type: this method takes application/json",
                                  call->method->server_streaming()
                                      ? ", application/connect+json and application/connect+proto"
                                      : " and application/proto"));
  }
  TACHO_RETURN_IF_ERROR(CheckHeaders(request, call->framing));
  if (call->framing != Framing::kEnvelopes) return request.body;
  TACHO_ASSIGN_OR_RETURN(const absl::string_view message, ReadEnvelope(request.body));
  return std::string(message);
}

}  // namespace

std::string ConnectCall::name() const {
  return absl::StrCat("/", method->service()->full_name(), "/", method->name());
}

std::vector<const google::protobuf::ServiceDescriptor*> BridgedServices() {
  // By a message of each file, so that the linker keeps its descriptors.
  return {v1::RangeRequest::descriptor()->file()->FindServiceByName("Query"),
          v1::FleetRequest::descriptor()->file()->FindServiceByName("View")};
}

const google::protobuf::MethodDescriptor* FindMethod(absl::string_view path) {
  for (const auto* const service : BridgedServices()) {
    absl::string_view method = path;
    if (!absl::ConsumePrefix(&method, "/") || !absl::ConsumePrefix(&method, service->full_name()) ||
        !absl::ConsumePrefix(&method, "/")) {
      continue;
    }
    return service->FindMethodByName(std::string(method));
  }
  return nullptr;
}

bool TakesContentType(const google::protobuf::MethodDescriptor& method, absl::string_view type) {
  Codec codec;
  Framing framing;
  return ReadContentType(method, type, &codec, &framing);
}

absl::StatusOr<ConnectCall> ReadConnectCall(const http::HttpRequest& request) {
  ConnectCall call;
  call.method = FindMethod(request.path);
  if (call.method == nullptr) {
    return errors::ErrorOf(errors::Failure::kNotFound,
                           absl::StrCat("no method ", ValidUtf8(request.path.substr(0, kShownPath)),
                                        " is served over HTTP"));
  }
  TACHO_ASSIGN_OR_RETURN(std::string message, request.method == "POST" ? ReadBody(request, &call)
                                                                       : ReadQuery(request, &call));
  TACHO_ASSIGN_OR_RETURN(call.timeout, ReadTimeout(request));
  if (call.codec == Codec::kJson) {
    TACHO_ASSIGN_OR_RETURN(message, FromJson(*call.method, message.empty() ? "{}" : message));
  }
  call.request = std::move(message);
  return call;
}

}  // namespace tacho::server::bridge
