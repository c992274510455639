// What the doors of OpenTelemetry share, whatever the signal: who sends, and over HTTP the forms of
// requests and answers (opentelemetry.io/docs/specs/otlp, "OTLP/HTTP").
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "grpcpp/grpcpp.h"
#include "server/http/http_guard.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"
#include "server/interop/intake.h"
#include "server/security/rights.h"
#include "tacho/config/v1/interop.pb.h"

namespace tacho::server::interop {

// A request that may be worked on.
struct OtlpCaller {
  Sender sender;
  bool json = false;  // Its form over HTTP, and so the answer's.
};

// Bytes of a request over HTTP, after decompression.
size_t MaxOtlpBytes(const config::v1::Interop& config);

// POST `path`.
http::Route OtlpRoute(
    std::string path, size_t max_bytes,
    std::function<void(const http::HttpRequest&, const http::ResponderPtr&)> handle);

// Lets the caller of a gRPC method in.
//   UNAUTHENTICATED, PERMISSION_DENIED  as security::AdmitCall().
//   UNAVAILABLE                         as Intake::CheckOpen().
absl::StatusOr<OtlpCaller> AdmitOtlpCall(const http::HttpGuard& guard, const Intake& intake,
                                         const grpc::CallbackServerContext& context);

// Lets the caller of an HTTP request in and unpacks its body into `bytes`: protobuf, also if it
// came as JSON of a message as `kind`. Nobody has looked at protobuf yet. nullopt: it is refused,
// and `responder` has the answer.
std::optional<OtlpCaller> ReadOtlpRequest(const http::HttpGuard& guard, const Intake& intake,
                                          size_t max_bytes, const http::HttpRequest& request,
                                          const http::ResponderPtr& responder,
                                          const google::protobuf::Message& kind,
                                          std::string* bytes);

// Reads protobuf.
//   INVALID_ARGUMENT (MALFORMED)  the bytes are no such message.
absl::Status ParseOtlp(absl::string_view bytes, google::protobuf::Message* message);

// The answer in the request's form: `response` if `status` is OK, else a google.rpc.Status
// ("OTLP/HTTP Response", "Failures").
http::HttpResponse OtlpAnswer(const absl::Status& status, const google::protobuf::Message& response,
                              bool json);

}  // namespace tacho::server::interop
