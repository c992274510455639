#include "server/interop/otlp_door.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "interop/google_rpc.pb.h"
#include "proto/base/check.h"
#include "proto/base/json_text.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/interop/otlp_metrics.h"
#include "server/interop/packed_body.h"
#include "server/metrics/metric_families.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::interop {
namespace {

constexpr char kOtlpPath[] = "/v1/metrics";
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
http::HttpResponse Write(const google::protobuf::Message& message, bool json,
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

// The body is a google.rpc.Status ("OTLP/HTTP Response", "Failures").
http::HttpResponse Failure(const absl::Status& status, bool json, http::HttpResponse response) {
  google::rpc::Status told;
  told.set_code(static_cast<int>(status.code()));
  told.set_message(std::string(status.message()));
  return Write(told, json, std::move(response));
}

absl::Status Parse(const std::string& body, bool json, OtlpDoor::Request* request) {
  if (!json) {
    if (request->ParseFromString(body)) return absl::OkStatus();
    return errors::ErrorOf(errors::Failure::kMalformed,
                           "the body is no ExportMetricsServiceRequest in protobuf");
  }
  if (IsJsonNested(body, kMaxJsonLevels)) {
    return errors::ErrorOf(errors::Failure::kMalformed,
                           absl::StrCat("the body has more than ", kMaxJsonLevels,
                                        " objects and arrays in each other"));
  }
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(body, request, options);
  if (parsed.ok()) return absl::OkStatus();
  return errors::ErrorOf(errors::Failure::kMalformed,
                         absl::StrCat("the body is no ExportMetricsServiceRequest in JSON: ",
                                      std::string(parsed.message())));
}

}  // namespace

OtlpDoor::OtlpDoor(OtlpOptions options)
    : options_(std::move(options)),
      resource_attributes_(options_.config.otlp_resource_attributes().begin(),
                           options_.config.otlp_resource_attributes().end()),
      max_bytes_(std::min<size_t>(options_.config.max_request_bytes(), kMaxBytes)),
      deltas_(options_.config.max_series()),
      samples_(metrics::NewCounter(options_.registry, "tacho_interop_samples_total",
                                   {{"protocol", "otlp"}})),
      exemplars_(metrics::NewCounter(options_.registry, "tacho_interop_exemplars_total",
                                     {{"protocol", "otlp"}})) {
  TACHO_CHECK(options_.intake != nullptr);
}

std::vector<http::Route> OtlpDoor::Routes() {
  http::Route route;
  route.path = kOtlpPath;
  route.methods = http::Methods::kPost;
  route.max_body = max_bytes_;
  route.later = [this](http::HttpRequest request, http::ResponderPtr responder) {
    Handle(request, responder);
  };
  return {std::move(route)};
}

void OtlpDoor::Handle(const http::HttpRequest& request, const http::ResponderPtr& responder) {
  const auto caller = http::AdmitRequest(options_.guard, request, security::Role::kWrite);
  if (!caller.ok()) return responder->Answer(http::CallerRefusal(caller.status()));
  const bool json = IsJson(request);
  const auto refuse = [&](const absl::Status& status) {
    responder->Answer(Failure(status, json, http::ErrorResponse(status)));
  };
  if (!json && !absl::StartsWithIgnoreCase(request.Header("content-type"), kProtobuf)) {
    http::HttpResponse response{.status = 415};
    response.body = absl::StrCat("Content-Type: ", kProtobuf, " or ", kJson, " is taken here\n");
    return responder->Answer(std::move(response));
  }
  if (const auto open = options_.intake->CheckOpen(); !open.ok()) return refuse(open);
  const auto body = UnpackEncoded(request.Header("content-encoding"), request.body, max_bytes_);
  if (!body.ok()) return refuse(body.status());
  Request message;
  if (const auto parsed = Parse(*body, json, &message); !parsed.ok()) return refuse(parsed);
  Store(message, SenderName("otlp", caller->rights(), request.credentials.peer),
        caller->rights_ptr(),
        [json, responder](const absl::Status& status, const Response& response) {
          responder->Answer(status.ok() ? Write(response, json, {})
                                        : Failure(status, json, http::ErrorResponse(status)));
        });
}

grpc::ServerUnaryReactor* OtlpDoor::Export(grpc::CallbackServerContext* context,
                                           const Request* request, Response* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto caller = security::AdmitCall(options_.guard.access, *context, security::Role::kWrite);
  if (!caller.ok()) {
    reactor->Finish(errors::ToGrpcStatus(caller.status()));
    return reactor;
  }
  const std::string peer = context->peer();  // "ipv4:10.0.0.7:4711".
  if (const auto open = options_.intake->CheckOpen(); !open.ok()) {
    reactor->Finish(errors::ToGrpcStatus(open));
    return reactor;
  }
  Store(*request, SenderName("otlp", caller->rights(), peer.substr(0, peer.rfind(':'))),
        caller->rights_ptr(),
        [reactor, response](const absl::Status& status, const Response& told) {
          *response = told;
          reactor->Finish(errors::ToGrpcStatus(status));
        });
  return reactor;
}

void OtlpDoor::Store(const Request& request, const std::string& sender,
                     const security::RightsPtr& rights,
                     std::function<void(const absl::Status&, const Response&)> done) {
  auto read_or = ReadOtlpMetrics(request, resource_attributes_, &deltas_);
  if (!read_or.ok()) return done(read_or.status(), Response());
  const OtlpMetrics read = *std::move(read_or);
  exemplars_.Increment(static_cast<double>(read.write.exemplars));
  options_.intake->Write(
      read.write, sender, rights,
      [this, rejected = read.rejected, problem = read.problem, added = read.added,
       done = std::move(done)](const WriteOutcome& outcome) {
        if (!outcome.status.ok()) deltas_.TakeBack(added);
        samples_.Increment(static_cast<double>(outcome.stored));
        Response response;
        if (rejected + outcome.refused > 0) {
          auto* const partial = response.mutable_partial_success();
          partial->set_rejected_data_points(static_cast<int64_t>(rejected + outcome.refused));
          partial->set_error_message(problem.empty() ? outcome.refusal : problem);
        }
        done(outcome.status, response);
      });
}

}  // namespace tacho::server::interop
