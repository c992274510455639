// Requests come from whoever reaches the HTTP port. A head that is accepted holds no character with
// which a header could end early, and reads the same when it is written out again. A connection
// reads the same requests from the same bytes, wherever they are cut.
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "server/http/http_connection.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"

namespace http = tacho::server::http;

namespace {

using State = http::HttpConnection::State;

constexpr size_t kMaxBody = 100;
// What a socket takes at once.
constexpr size_t kMaxInput = 32 << 10;

void CheckHead(absl::string_view bytes) {
  const auto request = http::ParseRequest(bytes);
  if (!request.ok()) return;
  const absl::string_view line = bytes.substr(0, bytes.find("\r\n"));
  std::string again = absl::StrCat(line, "\r\n");
  for (const auto& [name, value] : request->headers) {
    TACHO_CHECK(!name.empty() && value.find_first_of("\r\n") == std::string::npos);
    TACHO_CHECK(value.find('\0') == std::string::npos);
    absl::StrAppend(&again, name, ": ", value, "\r\n");
  }
  const auto second = http::ParseRequest(absl::StrCat(again, "\r\n"));
  TACHO_CHECK(second.ok());
  TACHO_CHECK(second->method == request->method && second->path == request->path);
  TACHO_CHECK(second->query == request->query && second->headers == request->headers);
  TACHO_CHECK(second->content_length == request->content_length);
  TACHO_CHECK(second->has_body == request->has_body);
  TACHO_CHECK(second->KeepsOpen() == request->KeepsOpen());
}

http::HttpRouter MakeRouter() {
  http::Route route{"/"};
  route.prefix = true;
  route.methods = http::Methods::kGetAndPost;
  route.max_body = kMaxBody;
  route.takes_chunks = true;
  route.handler = [](const http::HttpRequest&) { return http::HttpResponse(); };
  return http::HttpRouter({route}, http::BrowserGuard({}));
}

// The connection as a server would use it: every request whose body is taken gets an answer, the
// first that is refused is the last. Returns the heads and bodies.
std::vector<std::string> Serve(absl::string_view bytes, size_t cut) {
  static const http::HttpRouter* const kRouter = new http::HttpRouter(MakeRouter());
  int pair[2];
  TACHO_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
  http::HttpConnection client(pair[1], {}, nullptr);  // Closes.
  http::HttpConnection connection(pair[0], {}, nullptr);
  std::vector<std::string> seen;
  bool has_begun = false;  // The body of the request at hand.
  for (const absl::string_view piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
    const auto size = static_cast<ssize_t>(piece.size());
    TACHO_CHECK(send(pair[1], piece.data(), piece.size(), MSG_NOSIGNAL) == size);
    connection.Advance();
    while (connection.state() == State::kServing) {
      if (connection.IsTooLarge()) return seen;
      const auto request = http::ParseRequest(connection.head());
      if (!request.ok()) return seen;
      const http::Ruling ruling = kRouter->Judge(*request);
      if (ruling.refusal.has_value() || (request->has_body && ruling.body_bytes == 0)) return seen;
      TACHO_CHECK(ruling.body_bytes <= kMaxBody);
      if (std::exchange(has_begun, true)) {
        // The rest of it has come with this piece.
      } else if (ruling.in_chunks) {
        connection.ReadChunks(ruling.body_bytes, false);
      } else {
        connection.ReadBody(ruling.body_bytes, false);
      }
      if (connection.state() != State::kServing) connection.Advance();
      if (connection.state() != State::kServing) break;
      if (!connection.CheckBody().ok()) return seen;
      TACHO_CHECK(ruling.in_chunks ? connection.body().size() <= kMaxBody
                                   : connection.body().size() == ruling.body_bytes);
      seen.emplace_back(connection.head());
      seen.emplace_back(connection.body());
      connection.Send("x", http::HttpConnection::Then::kNext);
      connection.Advance();
      connection.NextRequest();
      has_begun = false;
      connection.Advance();
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckHead(bytes);
  if (size == 0 || size > kMaxInput) return 0;
  const std::vector<std::string> whole = Serve(bytes, size);
  TACHO_CHECK(whole == Serve(bytes, data[size - 1] % size));
  TACHO_CHECK(whole == Serve(bytes, size / 2));
  return 0;
}
