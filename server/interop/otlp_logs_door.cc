#include "server/interop/otlp_logs_door.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "server/interop/arena_messages.h"
#include "server/interop/otlp_http.h"
#include "server/interop/otlp_logs.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::interop {
namespace {

constexpr char kOtlpLogsPath[] = "/v1/logs";

}  // namespace

OtlpLogsDoor::OtlpLogsDoor(OtlpLogsOptions options)
    : options_(std::move(options)),
      resource_attributes_(options_.config.otlp_resource_attributes().begin(),
                           options_.config.otlp_resource_attributes().end()),
      max_bytes_(MaxOtlpBytes(options_.config)),
      calls_({kMethod, options_.guard, options_.intake, max_bytes_,
              [this](absl::string_view bytes, const OtlpCaller& caller, OtlpDone done) {
                Store(bytes, caller, std::move(done));
              }}),
      events_(metrics::NewCounter(options_.registry, "tacho_interop_events_total",
                                  {{"protocol", "otlp"}})),
      rejected_(metrics::NewCounter(options_.registry, "tacho_interop_log_records_rejected_total",
                                    {{"protocol", "otlp"}})) {
  TACHO_CHECK(options_.intake != nullptr && options_.now != nullptr);
}

std::vector<http::Route> OtlpLogsDoor::Routes() {
  return {OtlpRoute(kOtlpLogsPath, max_bytes_,
                    [this](const http::HttpRequest& request, const http::ResponderPtr& responder) {
                      Handle(request, responder);
                    })};
}

void OtlpLogsDoor::Handle(const http::HttpRequest& request, const http::ResponderPtr& responder) {
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

void OtlpLogsDoor::Store(absl::string_view bytes, const OtlpCaller& caller, OtlpDone done) {
  google::protobuf::Arena arena(RequestArena());
  auto* const request = google::protobuf::Arena::CreateMessage<Request>(&arena);
  if (const absl::Status status = ParseOtlp(bytes, request); !status.ok()) {
    return done(status, Response());
  }
  auto read_or = ReadOtlpLogs(*request, resource_attributes_, absl::ToUnixNanos(options_.now()));
  if (!read_or.ok()) return done(read_or.status(), Response());
  const OtlpLogs read = *std::move(read_or);
  options_.intake->WriteEvents(
      read.events, caller.sender,
      [this, rejected = read.rejected, problem = read.problem,
       done = std::move(done)](const WriteOutcome& outcome) {
        Response response;
        if (!outcome.status.ok()) return done(outcome.status, response);
        events_.Increment(static_cast<double>(outcome.stored));
        rejected_.Increment(static_cast<double>(rejected + outcome.refused));
        if (rejected + outcome.refused > 0) {
          auto* const partial = response.mutable_partial_success();
          partial->set_rejected_log_records(static_cast<int64_t>(rejected + outcome.refused));
          partial->set_error_message(absl::StrCat(
              outcome.refusal, outcome.refusal.empty() || problem.empty() ? "" : "; ", problem));
        }
        done(outcome.status, response);
      });
}

}  // namespace tacho::server::interop
