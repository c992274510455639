// One HTTP GET that ends when it should, whatever the other side does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/fetch/http_response.h"

namespace tacho::agent {

struct HttpUrl {
  std::string host;  // A name or an address; an IPv6 one without its brackets.
  std::string port = "80";
  std::string path = "/";  // With its query.

  std::string authority() const;  // "host:port", "[::1]:80".
};

//   INVALID_ARGUMENT  it is no http:// URL. There is no https: exporters of a machine speak to that
//                     machine.
absl::StatusOr<HttpUrl> ParseHttpUrl(absl::string_view url);

struct HttpGetOptions {
  // For all of it; looking up a name that is no address may take longer where the resolver hangs.
  absl::Duration timeout = absl::Seconds(5);
  uint64_t max_body_bytes = 8 << 20;
  std::string accept = "*/*";
  std::vector<std::string> headers = {};  // Further lines, "Name: value".
};

// The bytes of the request, the same over TCP and over TLS.
std::string HttpRequest(const HttpUrl& url, const HttpGetOptions& options);

// The answer, over TCP or TLS. `receive` gives up to `size` bytes; 0 at the end.
//   as `receive`, or HttpResponseReader.
absl::StatusOr<HttpResponse> ReceiveAnswer(
    const HttpGetOptions& options,
    absl::FunctionRef<absl::StatusOr<size_t>(char* buffer, size_t size)> receive);

// Redirects are not followed. Any status comes back, 404 as 200.
//   UNAVAILABLE         no connection, or it broke.
//   DEADLINE_EXCEEDED   not done in time.
//   others              as HttpResponseReader.
absl::StatusOr<HttpResponse> HttpGet(const HttpUrl& url, const HttpGetOptions& options);

}  // namespace tacho::agent
