#include "server/interop/remote_write_door.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/check.h"
#include "server/errors/error_table.h"
#include "server/interop/formats/packed_body.h"
#include "server/interop/formats/prometheus_write.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::interop {
namespace {

constexpr char kWritePath[] = "/api/v1/write";
constexpr char kMessage1[] = "prometheus.WriteRequest";
constexpr char kMessage2[] = "io.prometheus.write.v2.Request";

absl::Status WrongForm(absl::string_view text) {
  return errors::ErrorOf(errors::Failure::kUnsupported, text);
}

// 415 is what makes a sender try the other version (remote_write_spec_2_0.md, "Content-Type").
http::HttpResponse FormRefusal(const absl::Status& status) {
  return {.status = 415, .body = absl::StrCat(status.message(), "\n")};
}

}  // namespace

RemoteWriteDoor::RemoteWriteDoor(RemoteWriteOptions options)
    : options_(std::move(options)),
      samples_(metrics::NewCounter(options_.registry, "tacho_interop_samples_total",
                                   {{"protocol", "remote_write"}})),
      exemplars_(metrics::NewCounter(options_.registry, "tacho_interop_exemplars_total",
                                     {{"protocol", "remote_write"}})) {
  TACHO_CHECK(options_.intake != nullptr);
}

std::vector<http::Route> RemoteWriteDoor::Routes() {
  http::Route route;
  route.path = kWritePath;
  route.methods = http::Methods::kPost;
  // Snappy adds a sixth at most to what it cannot pack.
  route.max_body = options_.max_request_bytes + options_.max_request_bytes / 6 + 32;
  route.later = [this](http::HttpRequest request, http::ResponderPtr responder) {
    Handle(request, responder);
  };
  return {std::move(route)};
}

absl::StatusOr<RemoteWriteDoor::Version> RemoteWriteDoor::VersionOf(
    const http::HttpRequest& request) {
  if (!absl::EqualsIgnoreCase(request.Header("content-encoding"), "snappy")) {
    return WrongForm("Content-Encoding: remote write takes snappy, in its block format");
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(request.Header("content-type"), ';');
  if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts[0]), "application/x-protobuf")) {
    return WrongForm(absl::StrCat("Content-Type: remote write takes application/x-protobuf, with ",
                                  "proto=", kMessage1, " or proto=", kMessage2));
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const absl::string_view parameter = absl::StripAsciiWhitespace(parts[i]);
    if (!absl::StartsWithIgnoreCase(parameter, "proto=")) continue;
    const absl::string_view message = parameter.substr(6);
    if (message == kMessage1) return Version::k1;
    if (message == kMessage2) return Version::k2;
    return WrongForm(absl::StrCat("Content-Type: no message ", message, " is known; ", kMessage1,
                                  " and ", kMessage2, " are"));
  }
  return Version::k1;
}

void RemoteWriteDoor::Handle(const http::HttpRequest& request,
                             const http::ResponderPtr& responder) {
  const auto caller = http::AdmitRequest(options_.guard, request, security::Role::kWrite);
  if (!caller.ok()) return responder->Answer(http::CallerRefusal(caller.status()));
  const auto version = VersionOf(request);
  if (!version.ok()) return responder->Answer(FormRefusal(version.status()));
  const auto refuse = [&](absl::Status status) {
    responder->Answer(Answer(*version, {.status = std::move(status)}));
  };
  if (auto open = options_.intake->CheckOpen(); !open.ok()) return refuse(std::move(open));
  const auto message = UnpackSnappy(request.body, options_.max_request_bytes);
  if (!message.ok()) return refuse(message.status());
  const auto write =
      *version == Version::k1 ? ReadWriteRequest1(*message) : ReadWriteRequest2(*message);
  if (!write.ok()) return refuse(write.status());
  exemplars_.Increment(static_cast<double>(write->exemplars));
  options_.intake->Write(*write, {"remote_write", request.credentials, caller->rights_ptr()},
                         [this, version = *version, responder](const WriteOutcome& outcome) {
                           samples_.Increment(static_cast<double>(outcome.stored));
                           responder->Answer(Answer(version, outcome));
                         });
}

http::HttpResponse RemoteWriteDoor::Answer(Version version, const WriteOutcome& outcome) const {
  http::HttpResponse response{.status = 204};
  if (!outcome.status.ok()) {
    response = http::ErrorResponse(outcome.status);
  } else if (outcome.refused > 0) {
    response.status = 400;
    response.body = absl::StrCat(outcome.refused, " samples were refused, and all others stored. ",
                                 outcome.refusal, "\n");
  }
  if (version == Version::k1) return response;
  // A request that comes again counts as not written, though a part of it may be.
  const bool settled = outcome.status.ok();
  const std::pair<const char*, uint64_t> counts[] = {
      {"X-Prometheus-Remote-Write-Samples-Written", settled ? outcome.stored : 0},
      {"X-Prometheus-Remote-Write-Histograms-Written", settled ? outcome.stored_histograms : 0},
      {"X-Prometheus-Remote-Write-Exemplars-Written", 0},
  };
  for (const auto& [name, count] : counts) {
    response.headers.emplace_back(name, absl::StrCat(count));
  }
  return response;
}

}  // namespace tacho::server::interop
