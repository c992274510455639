// Answers in the form of the Connect protocol (https://connectrpc.com/docs/protocol). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"
#include "server/bridge/connect_call.h"
#include "server/http/http_message.h"

namespace tacho::server::bridge {

// {"code":"not_found","message":"…","details":[…]}, with the HTTP status of the protocol's table,
// and Retry-After if the status has a RetryInfo. For calls with Framing::kUnary, and for requests
// that name no call.
http::HttpResponse ErrorAnswer(const grpc::Status& status);

// The answer of a unary call; `message` is serialized. 500 if it has no form in JSON.
http::HttpResponse UnaryAnswer(const ConnectCall& call, std::string message);

// A stream: its head, one message, and its end, in which the status is. The status of HTTP is 200
// whatever the end is.
http::HttpResponse StreamHead(const ConnectCall& call);
//   INTERNAL  the message has no form in JSON: end the stream with this.
absl::StatusOr<std::string> StreamMessage(const ConnectCall& call, absl::string_view message);
std::string StreamEnd(const ConnectCall& call, const grpc::Status& status);

// The protocol's HTTP status for a code: 404 for NOT_FOUND.
int HttpStatusOf(grpc::StatusCode code);

}  // namespace tacho::server::bridge
