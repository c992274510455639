// Reads an HTTP request as a call of a gRPC method, by the Connect protocol
// (https://connectrpc.com/docs/protocol). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "server/http/http_message.h"

namespace tacho::server::bridge {

enum class Codec : uint8_t { kProto, kJson };

enum class Framing : uint8_t {
  kUnary,      // One message is the body.
  kEnvelopes,  // application/connect+…: each message behind five bytes, the status in the last one.
  // A JSON object on each line, the status in the last one: for a streaming method that is asked
  // with application/json. Not a part of Connect; curl can use it.
  kLines,
};

struct ConnectCall {
  const google::protobuf::MethodDescriptor* method = nullptr;
  Codec codec = Codec::kProto;
  Framing framing = Framing::kUnary;
  std::string request;  // Serialized.
  // Within which the client wants the end of the answer; none: it did not say.
  std::optional<absl::Duration> timeout;

  // As gRPC writes it: "/tacho.v1.Query/GetJob".
  std::string name() const;
};

// The services that can be asked over HTTP: those that only read.
std::vector<const google::protobuf::ServiceDescriptor*> BridgedServices();

// The method of a path such as "/tacho.v1.Query/GetJob"; null if there is none.
const google::protobuf::MethodDescriptor* FindMethod(absl::string_view path);

// Whether a POST with this Content-Type can ask `method` (415 if not).
bool TakesContentType(const google::protobuf::MethodDescriptor& method, absl::string_view type);

// POST has the message as its body. GET has it in its query: message, encoding (json, proto), and
// base64=1 if it is in URL-safe base64.
//   NOT_FOUND          no such method
//   UNIMPLEMENTED      a compressed message; another version of the protocol.
//   INVALID_ARGUMENT   the message, its envelope, its JSON or a header is wrong, also a
//   Content-Type
//                      that TakesContentType() does not; the text says where. Names of fields that
//                      the collector does not know are wrong, too.
absl::StatusOr<ConnectCall> ReadConnectCall(const http::HttpRequest& request);

}  // namespace tacho::server::bridge
