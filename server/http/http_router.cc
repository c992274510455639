#include "server/http/http_router.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "server/errors/error_table.h"

namespace tacho::server::http {
namespace {

// RFC 9112, 3, asks for 8000 bytes at least.
constexpr size_t kMaxTargetBytes = 8 << 10;

bool IsRead(absl::string_view method) { return method == "GET" || method == "HEAD"; }

bool Takes(Methods methods, absl::string_view method) {
  if (methods == Methods::kPostPutDelete) {
    return method == "POST" || method == "PUT" || method == "DELETE";
  }
  if (IsRead(method)) return methods != Methods::kPost;
  return method == "POST" && methods != Methods::kGet;
}

absl::string_view Allowed(Methods methods) {
  switch (methods) {
    case Methods::kGet:
      return "GET, HEAD";
    case Methods::kPost:
      return "POST";
    case Methods::kPostPutDelete:
      return "POST, PUT, DELETE";
    case Methods::kGetAndPost:
      break;
  }
  return "GET, HEAD, POST";
}

HttpResponse TooLarge(absl::string_view text) {
  return ErrorResponse(errors::ErrorOf(errors::Failure::kTooLarge, text));
}

// Nothing but chunks, which HTTP/1.0 does not have.
bool IsInChunks(const HttpRequest& request) {
  return request.minor_version > 0 && request.CountOf("transfer-encoding") == 1 &&
         absl::EqualsIgnoreCase(request.Header("transfer-encoding"), "chunked");
}

// The refusal of a POST's body.
std::optional<HttpResponse> CheckBody(const HttpRequest& request, size_t max_body) {
  if (request.CountOf("content-length") == 0) {
    return HttpResponse{.status = 411,
                        .body = "the body's length is missing: send Content-Length\n"};
  }
  if (request.content_length <= max_body) return std::nullopt;
  return TooLarge(absl::StrCat("the body has more than ", max_body, " bytes"));
}

}  // namespace

HttpRouter::HttpRouter(std::vector<Route> routes, BrowserGuard guard)
    : routes_(std::move(routes)), guard_(std::move(guard)) {
  for (const Route& route : routes_) {
    TACHO_CHECK((route.handler == nullptr) != (route.later == nullptr));
  }
}

const Route* HttpRouter::Find(absl::string_view path) const {
  const Route* found = nullptr;
  for (const Route& route : routes_) {
    if (route.path == path) return &route;
    if (!route.prefix || !absl::StartsWith(path, route.path)) continue;
    if (found == nullptr || route.path.size() > found->path.size()) found = &route;
  }
  return found;
}

Ruling HttpRouter::Judge(const HttpRequest& request) const {
  const Route* const route = Find(request.path);
  const bool reads = IsRead(request.method);
  // Nobody waits for "100 Continue" here: the answer itself comes before any body.
  if (!reads && request.has_body && route != nullptr && route->max_body == 0) {
    return {route, TooLarge("requests here have no body")};
  }
  if (request.target_bytes > kMaxTargetBytes) {
    return {route, HttpResponse{.status = 414,
                                .body = absl::StrCat("the request's target has more than ",
                                                     kMaxTargetBytes, " bytes\n")}};
  }
  if (request.CountOf("range") > 0) return {route, HttpResponse{.status = 416}};
  if (route == nullptr) {
    return {nullptr, ErrorResponse(errors::ErrorOf(errors::Failure::kNotFound,
                                                   "No such page. / lists the pages."))};
  }
  if (!Takes(route->methods, request.method)) {
    HttpResponse refusal{.status = 405,
                         .body = absl::StrCat("this page takes ", Allowed(route->methods), "\n")};
    refusal.headers.emplace_back("Allow", std::string(Allowed(route->methods)));
    return {route, std::move(refusal)};
  }
  if (auto refusal = guard_.Check(request, route->audience); refusal.has_value()) {
    return {route, std::move(refusal)};
  }
  // A DELETE need not say that it has no body (RFC 9110, 8.6).
  const bool bare = request.method == "DELETE" && !request.has_body;
  if (reads || bare || route->max_body == 0) return {route};
  if (route->takes_chunks && IsInChunks(request)) {
    return {route, std::nullopt, route->max_body, true};
  }
  if (auto refusal = CheckBody(request, route->max_body); refusal.has_value()) {
    return {route, std::move(refusal)};
  }
  return {route, std::nullopt, request.content_length};
}

}  // namespace tacho::server::http
