#include "agent/sources/fetch/http_get.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/sources/fetch/tcp_socket.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {

std::string HttpUrl::authority() const {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

absl::StatusOr<HttpUrl> ParseHttpUrl(absl::string_view url) {
  constexpr absl::string_view kForm = "expected http://HOST[:PORT][/PATH]";
  const auto refuse = [&] {
    return absl::InvalidArgumentError(absl::StrCat("'", url, "': ", kForm));
  };
  absl::string_view rest = url;
  if (!absl::ConsumePrefix(&rest, "http://")) return refuse();
  const size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  absl::string_view authority = rest.substr(0, slash);
  HttpUrl result;
  if (slash < rest.size()) result.path = std::string(rest.substr(slash));
  if (absl::StartsWith(result.path, "?")) result.path.insert(0, 1, '/');
  if (absl::ConsumePrefix(&authority, "[")) {
    const size_t end = authority.find(']');
    if (end == absl::string_view::npos) return refuse();
    result.host = std::string(authority.substr(0, end));
    authority.remove_prefix(end + 1);
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    result.host = std::string(authority.substr(0, colon));
    authority.remove_prefix(colon);
  }
  uint32_t port = 0;
  constexpr uint32_t kLastPort = 65535;
  if (absl::ConsumePrefix(&authority, ":")) {
    if (!absl::SimpleAtoi(authority, &port) || port == 0 || port > kLastPort) return refuse();
    result.port = std::string(authority);
  } else if (!authority.empty()) {
    return refuse();
  }
  for (const unsigned char c : url) {
    if (c <= ' ' || c == 0x7f || c == '@') return refuse();  // Neither header lines nor passwords.
  }
  return result.host.empty() ? refuse() : absl::StatusOr<HttpUrl>(result);
}

std::string HttpRequest(const HttpUrl& url, const HttpGetOptions& options) {
  std::string request =
      absl::StrCat("GET ", url.path, " HTTP/1.1\r\nHost: ", url.authority(),
                   "\r\nUser-Agent: tacho-agent\r\nAccept: ", options.accept, "\r\n");
  for (const std::string& line : options.headers) absl::StrAppend(&request, line, "\r\n");
  absl::StrAppend(&request, "Connection: close\r\n\r\n");
  return request;
}

absl::StatusOr<HttpResponse> ReceiveAnswer(
    const HttpGetOptions& options,
    absl::FunctionRef<absl::StatusOr<size_t>(char* buffer, size_t size)> receive) {
  HttpResponseReader reader(options.max_body_bytes);
  char buffer[16 << 10];  // As much as a TLS record carries.
  while (!reader.done()) {
    TACHO_ASSIGN_OR_RETURN(const size_t got, receive(buffer, sizeof(buffer)));
    const absl::Status status = got == 0 ? reader.End() : reader.Feed({buffer, got});
    if (!status.ok()) return status;
  }
  return reader.response();
}

absl::StatusOr<HttpResponse> HttpGet(const HttpUrl& url, const HttpGetOptions& options) {
  const absl::Time deadline = MonotonicNow() + options.timeout;
  TACHO_ASSIGN_OR_RETURN(const auto socket, ConnectTcp(url.host, url.port, deadline));
  TACHO_RETURN_IF_ERROR(socket->Send(HttpRequest(url, options), deadline));
  return ReceiveAnswer(
      options, [&](char* buffer, size_t size) { return socket->Receive(buffer, size, deadline); });
}

}  // namespace tacho::agent
