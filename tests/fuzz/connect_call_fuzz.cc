// Calls over HTTP come from whoever reaches the port. What is accepted is a message of the method's
// type, and its answer can be written. The first byte says how the rest is sent.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/stubs/logging.h"
#include "proto/base/check.h"
#include "server/bridge/connect_answer.h"
#include "server/bridge/connect_call.h"
#include "server/errors/grpc_status.h"

namespace bridge = tacho::server::bridge;
namespace http = tacho::server::http;

namespace {

constexpr const char* kPaths[] = {"/tacho.v1.Query/ListJobs", "/tacho.v1.Query/Range",
                                  "/tacho.v1.Query/Compare", "/tacho.v1.View/Fleet"};
constexpr const char* kTypes[] = {"application/json", "application/proto",
                                  "application/connect+json", "application/connect+proto"};

http::HttpRequest MakeRequest(uint8_t how, std::string message) {
  http::HttpRequest request;
  request.path = kPaths[how & 3];
  if ((how & 0x40) != 0) {
    request.method = "GET";
    request.query = {{"encoding", (how & 4) != 0 ? "json" : "proto"},
                     {"base64", (how & 8) != 0 ? "1" : "0"},
                     {"message", std::move(message)}};
    return request;
  }
  request.method = "POST";
  request.headers = {{"content-type", kTypes[(how >> 2) & 3]}};
  if ((how & 0x10) != 0) request.headers.emplace_back("connect-timeout-ms", message.substr(0, 11));
  request.body = std::move(message);
  return request;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer no_lines_about_what_is_no_utf8;
  if (size == 0) return 0;
  const auto call = bridge::ReadConnectCall(
      MakeRequest(data[0], std::string(reinterpret_cast<const char*>(data + 1), size - 1)));
  if (!call.ok()) {
    const auto answer = bridge::ErrorAnswer(tacho::server::errors::ToGrpcStatus(call.status()));
    TACHO_CHECK(answer.status >= 400 && !answer.body.empty());
    return 0;
  }
  if (call->codec == bridge::Codec::kJson) {
    const std::unique_ptr<google::protobuf::Message> message(
        google::protobuf::MessageFactory::generated_factory()
            ->GetPrototype(call->method->input_type())
            ->New());
    TACHO_CHECK(message->ParseFromString(call->request));
  }
  // As if a server had answered with these bytes.
  const auto piece = bridge::StreamMessage(*call, call->request);
  TACHO_CHECK(!piece.ok() || !piece->empty());
  return 0;
}
