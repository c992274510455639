// The collector's page: where browsers find its files.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/http_server.h"

namespace tacho::server::web {

struct WebOptions {
  // Files of the page are read from there at each request, for those who work on it. Empty: those
  // in the program. Runbooks are always those in the program.
  std::string directory;
};

// Whether there is a page to lead to.
bool HasPage(const WebOptions& options);

// A directory is for the developer alone.
//   INVALID_ARGUMENT  there is one, and `listen_http` is not a loopback address; or it has no
//                     index.html.
absl::Status CheckWebDirectory(const WebOptions& options, absl::string_view listen_http);

// /ui/  the page; its files below. The files hold no data, so they need no token. A name with a
//       hash may be kept for ever; everything else has an ETag, and is asked for again (304).
//       404 for what is not there, and for all if the collector is built without the page.
// /ui   303 to /ui/; 404 without the page
std::vector<http::Route> WebRoutes(const WebOptions& options);

}  // namespace tacho::server::web
