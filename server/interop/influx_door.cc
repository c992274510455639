#include "server/interop/influx_door.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/json_text.h"
#include "server/errors/error_table.h"
#include "server/interop/formats/influx_lines.h"
#include "server/interop/formats/packed_body.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::interop {
namespace {

using Version = InfluxDoor::Version;

constexpr char kWrite1Path[] = "/write";
constexpr char kWrite2Path[] = "/api/v2/write";
constexpr char kPingPath[] = "/ping";

// The words of InfluxDB for what has failed (the schema Error of its API).
absl::string_view CodeOf(int status) {
  switch (status) {
    case 400:
    case 421:
      return "invalid";
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 413:
      return "request too large";
    case 415:
      return "unsupported media type";
    case 503:
      return "unavailable";
    default:
      return "internal error";
  }
}

// Gives an answer the body that clients of this version read.
http::HttpResponse WithError(Version version, absl::string_view text, http::HttpResponse response) {
  response.content_type = "application/json; charset=utf-8";
  response.body = version == Version::k1
                      ? absl::StrCat("{\"error\":", JsonString(text), "}\n")
                      : absl::StrCat("{\"code\":", JsonString(CodeOf(response.status)),
                                     ",\"message\":", JsonString(text), "}\n");
  return response;
}

// The nanoseconds of the unit that the request's times have.
absl::StatusOr<int64_t> UnitOf(Version version, const http::HttpRequest& request) {
  const auto asked = std::find_if(request.query.begin(), request.query.end(),
                                  [](const auto& pair) { return pair.first == "precision"; });
  if (asked == request.query.end() || asked->second.empty()) return 1;
  struct Unit {
    const char* name;
    int64_t ns;
    bool only_in_1;
  };
  constexpr Unit kUnits[] = {
      {"ns", 1, false},
      {"us", 1'000, false},
      {"ms", 1'000'000, false},
      {"s", 1'000'000'000, false},
      {"n", 1, true},
      {"u", 1'000, true},
      {"m", 60 * int64_t{1'000'000'000}, true},
      {"h", 3600 * int64_t{1'000'000'000}, true},
  };
  for (const Unit& unit : kUnits) {
    if (asked->second == unit.name && (version == Version::k1 || !unit.only_in_1)) return unit.ns;
  }
  return errors::ErrorOf(
      errors::Failure::kMalformed,
      absl::StrCat("precision=", asked->second.substr(0, 20), " is not known; ",
                   version == Version::k1 ? "n, u, ms, s, m and h" : "ns, us, ms and s", " are"));
}

// A page of another site can make a browser send a text without asking first, as HTML forms do
// (https://fetch.spec.whatwg.org/#simple-header), with the credentials that the browser has. Only
// browsers send these headers.
absl::Status CheckNoBrowser(const http::HttpRequest& request) {
  if (request.CountOf("origin") == 0 && request.CountOf("sec-fetch-site") == 0) {
    return absl::OkStatus();
  }
  return errors::ErrorOf(errors::Failure::kForbidden, "pages in browsers may not write");
}

// What is left out of a request for good.
std::string Dropped(uint64_t lines, const std::string& problem, const WriteOutcome& outcome) {
  return absl::StrCat(outcome.stored > 0 ? "partial write: " : "",
                      lines > 0 ? problem : outcome.refusal, "; dropped=", lines + outcome.refused,
                      " (", lines, " lines, and ", outcome.refused, " samples of others)");
}

}  // namespace

InfluxDoor::InfluxDoor(InfluxOptions options)
    : options_(std::move(options)),
      samples_(metrics::NewCounter(options_.registry, "tacho_interop_samples_total",
                                   {{"protocol", "influx"}})),
      strings_(metrics::NewCounter(options_.registry, "tacho_interop_strings_total",
                                   {{"protocol", "influx"}})) {
  TACHO_CHECK(options_.intake != nullptr);
}

std::vector<http::Route> InfluxDoor::Routes() {
  std::vector<http::Route> routes;
  for (const auto& [path, version] :
       {std::pair(kWrite1Path, Version::k1), std::pair(kWrite2Path, Version::k2)}) {
    http::Route& route = routes.emplace_back();
    route.path = path;
    route.methods = http::Methods::kPost;
    route.max_body = options_.max_request_bytes;
    route.takes_chunks = true;  // Telegraf does not know the length when it begins.
    route.later = [this, version = version](http::HttpRequest request,
                                            http::ResponderPtr responder) {
      Handle(version, request, responder);
    };
  }
  http::Route& ping = routes.emplace_back();
  ping.path = kPingPath;
  ping.handler = [](const http::HttpRequest&) {
    // Some clients refuse to write where no version is told; this one has both ways to write.
    return http::HttpResponse{
        .status = 204,
        .headers = {{"X-Influxdb-Version", "1.8.0"}, {"X-Influxdb-Build", "Tachograph"}}};
  };
  return routes;
}

void InfluxDoor::Handle(Version version, const http::HttpRequest& request,
                        const http::ResponderPtr& responder) {
  const auto answer = [version, responder](absl::string_view text, http::HttpResponse response) {
    responder->Answer(WithError(version, text, std::move(response)));
  };
  const auto refuse = [&answer](const absl::Status& status) {
    answer(status.message(), http::ErrorResponse(status));
  };
  if (const auto sent = CheckNoBrowser(request); !sent.ok()) return refuse(sent);
  const auto caller = http::AdmitRequest(options_.guard, request, security::Role::kWrite);
  if (!caller.ok()) {
    return answer(caller.status().message(), http::CallerRefusal(caller.status()));
  }
  const auto unit_ns = UnitOf(version, request);
  if (!unit_ns.ok()) return refuse(unit_ns.status());
  if (const auto open = options_.intake->CheckOpen(); !open.ok()) return refuse(open);
  const auto text =
      UnpackEncoded(request.Header("content-encoding"), request.body, options_.max_request_bytes);
  if (!text.ok()) return refuse(text.status());
  const auto read = ReadInfluxLines(*text, *unit_ns, absl::ToUnixNanos(options_.now()));
  if (!read.ok()) return refuse(read.status());
  strings_.Increment(static_cast<double>(read->strings));
  options_.intake->Write(read->write, {"influx", request.credentials, caller->rights_ptr()},
                         [this, answer, responder, rejected = read->rejected,
                          problem = read->problem](const WriteOutcome& outcome) {
                           samples_.Increment(static_cast<double>(outcome.stored));
                           if (!outcome.status.ok()) {
                             return answer(outcome.status.message(),
                                           http::ErrorResponse(outcome.status));
                           }
                           if (rejected + outcome.refused == 0)
                             return responder->Answer({.status = 204});
                           answer(Dropped(rejected, problem, outcome), {.status = 400});
                         });
}

}  // namespace tacho::server::interop
