// One request and its answer, as HTTP/1.1 writes them (RFC 9112). No sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/security/access_control.h"

namespace tacho::server::http {

struct HttpRequest {
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  std::string method;  // "GET".
  std::string path;    // Without the query, percent-decoded: "/metrics".
  Pairs query;         // Decoded, in the order sent; '+' is a space. Without '=': an empty value.
  size_t target_bytes = 0;  // The target as sent: path and query, in the absolute form all of it.
  Pairs headers;            // Names in lower case, values without the blanks around them.
  uint64_t content_length = 0;
  bool has_body = false;  // A length above zero, or a transfer encoding.
  int minor_version = 1;  // x in HTTP/1.x.
  std::string body;       // On routes that take one.

  security::Credentials credentials;  // Shown by the request and its connection.

  // The first header of that name, which is in lower case; empty if there is none.
  absl::string_view Header(absl::string_view name) const;
  size_t CountOf(absl::string_view name) const;
  // Whether the connection may take another request after this one: HTTP/1.1 without
  // "Connection: close".
  bool KeepsOpen() const;
};

// Reads the head of a request: `bytes` up to the first empty line; what follows is not looked at.
// Strict: every line ends in CRLF, a header has no blank before its colon and does not continue on
// the next line, no other control characters, at most one Host and one length. The target is a
// path, or a whole URL (RFC 9112, 3.2.2), of which the host does not matter, as Host does not. The
// caller has bounded the size; time and memory are linear in it. Fills in everything but the body
// and the credentials.
//   MALFORMED (server/errors)  it breaks one of these rules; the text says which.
absl::StatusOr<HttpRequest> ParseRequest(absl::string_view bytes);

// nullopt unless two hexadecimal digits follow each '%'. In a query '+' is a space.
std::optional<std::string> PercentDecode(absl::string_view text, bool in_query);

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // Besides those above.

  // Whether a header has this name, in any case of letters.
  bool HasHeader(absl::string_view name) const;
};

// The row of server/errors/error_table.h as an answer: its HTTP status, the text as body, and
// Retry-After in whole seconds where a retry helps. `spread` as for errors::RetryAfter().
HttpResponse ErrorResponse(const absl::Status& status, uint64_t spread = 0);

// The bytes of an answer. `now` is its Date. `with_body` is false for HEAD, which still learns the
// length. The client reads whether the connection takes another request after it (`keep_open`).
std::string WriteResponse(const HttpResponse& response, absl::Time now, bool with_body = true,
                          bool keep_open = false);

// The head of an answer whose length is not known. With `chunked`, which HTTP/1.0 does not know,
// its body comes in chunks; else the connection's end is the body's.
std::string WriteStreamHead(const HttpResponse& head, absl::Time now, bool chunked, bool keep_open);
// One chunk (RFC 9112, 7.1); nothing for no bytes, because an empty chunk is the last one.
std::string WriteChunk(absl::string_view bytes);
inline constexpr char kLastChunk[] = "0\r\n\r\n";

}  // namespace tacho::server::http
