// The routes of the HTTP port, and the decision on the head of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/http/browser_guard.h"
#include "server/http/http_message.h"
#include "server/http/responder.h"

namespace tacho::server::http {

// HEAD goes with GET.
enum class Methods : uint8_t { kGet, kPost, kGetAndPost, kPostPutDelete };

// One of the handlers is set. It is called on any of the server's threads, several at once; what it
// throws is answered with 500.
struct Route {
  std::string path;
  // Answers as it returns, and so holds a thread for as long as it takes.
  std::function<HttpResponse(const HttpRequest&)> handler;
  // Must return soon; the answer may come later, from any thread (responder.h). So many answers may
  // take long at once, and no thread waits for them.
  std::function<void(HttpRequest, ResponderPtr)> later;
  // Serves the paths that begin with `path`, too. The longest that fits is taken.
  bool prefix = false;
  Methods methods = Methods::kGet;
  // The longest body of a POST, PUT or DELETE. 0: it may have none.
  size_t max_body = 0;
  // Whether a body may come in chunks, for clients that do not know its length when they begin.
  bool takes_chunks = false;
  Audience audience = Audience::kMachines;
};

// The decision on the head of a request.
struct Ruling {
  const Route* route = nullptr;         // Null: there is none for its path.
  std::optional<HttpResponse> refusal;  // The answer, if the head alone decides.
  size_t body_bytes = 0;                // To be read before the handler is called.
  bool in_chunks = false;               // As chunks, of which body_bytes is the most they may have.
};

// Immutable, so thread-safe.
class HttpRouter {
 public:
  HttpRouter(std::vector<Route> routes, BrowserGuard guard);

  // Looks at the head, and at the credentials.
  //   404  no such path.
  //   405  another method than the route's, which Allow names.
  //   411  a POST or PUT whose length is not told: also one in chunks, unless the route takes them.
  //        A DELETE may not have such a body either.
  //   413  a body that is too long, or on a route without one. The body of a GET means nothing, and
  //        is not looked at.
  //   414  a target above 8 KiB.
  //   416  a range: one header could ask for thousands of overlapping copies of a page.
  //   and as BrowserGuard::Check().
  Ruling Judge(const HttpRequest& request) const;

 private:
  const Route* Find(absl::string_view path) const;

  const std::vector<Route> routes_;
  const BrowserGuard guard_;
};

}  // namespace tacho::server::http
