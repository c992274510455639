// Protects the port against pages of other sites: such a page can make somebody's browser ask here,
// and must learn nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/http/http_message.h"
#include "server/security/tls_source.h"

namespace tacho::server::http {

// For whom a route is.
enum class Audience : uint8_t {
  kMachines,  // Scrapers and probes, which name the collector as they like.
  kPage,      // Browsers that load the page.
  kApi,       // The page's calls, and those of other programs.
};

// Adds the headers that tell browsers to run nothing but the page's own files, to frame it nowhere,
// to guess no types, and to keep no answer of the API. A header that the handler has set stays. A
// 401 of the API names no Basic challenge, so that no dialog of the browser opens.
void AddBrowserHeaders(Audience audience, HttpResponse* response);

// Immutable but for the certificate, so thread-safe.
class BrowserGuard {
 public:
  struct Options {
    std::string listen_address;                // "collector.example:7412".
    std::vector<std::string> hosts;            // listen.http_hosts, and that of ui.url.
    const security::TlsSource* tls = nullptr;  // Not owned. Null: no TLS.
    bool require_certificate = false;          // listen.tls.client_certificates: require.
  };
  explicit BrowserGuard(Options options);

  // The refusal of a request to the page or the API:
  //   403  it shows no client certificate where one is required; or a page of another site asks the
  //        API (Sec-Fetch-Site).
  //   421  Host is no name of the collector. Somebody who owns a name can let it lead to any
  //        address, such as 127.0.0.1, and then a page of that name may read what is served there.
  std::optional<HttpResponse> Check(const HttpRequest& request, Audience audience) const;

  // Whether Host, "NAME:PORT", is one of the collector: an address, because no page of a name has
  // an address as its Host; a name for loopback; the host of listen.http; a name of the
  // certificate; or one of listen.http_hosts and ui.url.
  bool IsOurs(absl::string_view host) const;

 private:
  const Options options_;
};

}  // namespace tacho::server::http
