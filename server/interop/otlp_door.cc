#include "server/interop/otlp_door.h"

#include <utility>

#include "proto/base/check.h"
#include "server/interop/otlp_http.h"
#include "server/interop/otlp_metrics.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::interop {
namespace {

constexpr char kOtlpPath[] = "/v1/metrics";

}  // namespace

OtlpDoor::OtlpDoor(OtlpOptions options)
    : options_(std::move(options)),
      resource_attributes_(options_.config.otlp_resource_attributes().begin(),
                           options_.config.otlp_resource_attributes().end()),
      max_bytes_(MaxOtlpBytes(options_.config)),
      calls_({kMethod, options_.guard, options_.intake, max_bytes_,
              [this](absl::string_view bytes, const OtlpCaller& caller, OtlpDone done) {
                Store(bytes, caller, std::move(done));
              }}),
      memory_(options_.config.max_series()),
      samples_(metrics::NewCounter(options_.registry, "tacho_interop_samples_total",
                                   {{"protocol", "otlp"}})),
      exemplars_(metrics::NewCounter(options_.registry, "tacho_interop_exemplars_total",
                                     {{"protocol", "otlp"}})) {
  TACHO_CHECK(options_.intake != nullptr);
}

std::vector<http::Route> OtlpDoor::Routes() {
  return {OtlpRoute(kOtlpPath, max_bytes_,
                    [this](const http::HttpRequest& request, const http::ResponderPtr& responder) {
                      Handle(request, responder);
                    })};
}

void OtlpDoor::Handle(const http::HttpRequest& request, const http::ResponderPtr& responder) {
  std::string bytes;
  const auto caller = ReadOtlpRequest(options_.guard, *options_.intake, max_bytes_, request,
                                      responder, Request::default_instance(), &bytes);
  if (!caller.has_value()) return;
  Store(bytes, *caller,
        [json = caller->json, responder](const absl::Status& status,
                                         const google::protobuf::Message& response) {
          responder->Answer(OtlpAnswer(status, response, json));
        });
}

void OtlpDoor::Store(absl::string_view request, const OtlpCaller& caller, OtlpDone done) {
  auto read_or = ReadOtlpMetrics(request, resource_attributes_, &memory_);
  if (!read_or.ok()) return done(read_or.status(), Response());
  OtlpMetrics read = *std::move(read_or);
  exemplars_.Increment(static_cast<double>(read.write.exemplars));
  options_.intake->Write(
      read.write, caller.sender,
      [this, rejected = read.rejected, problem = read.problem, noted = std::move(read.noted),
       done = std::move(done)](const WriteOutcome& outcome) {
        if (!outcome.status.ok()) noted.TakeBack(&memory_);
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
