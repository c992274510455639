#include "server/http/browser_guard.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/address.h"
#include "server/errors/error_table.h"

namespace tacho::server::http {
namespace {

constexpr char kContentPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
    "'script'; trusted-types 'none'";

void AddUnlessSet(absl::string_view name, absl::string_view value, HttpResponse* response) {
  if (response->HasHeader(name)) return;
  response->headers.emplace_back(std::string(name), std::string(value));
}

bool IsAddress(const std::string& host) {
  in6_addr address = {};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool HasName(const X509& certificate, const std::string& host) {
  // OpenSSL changes nothing; its type lacks the const.
  return X509_check_host(const_cast<X509*>(&certificate), host.data(), host.size(), 0, nullptr) ==
         1;
}

}  // namespace

void AddBrowserHeaders(Audience audience, HttpResponse* response) {
  if (audience == Audience::kMachines) return;
  AddUnlessSet("Content-Security-Policy", kContentPolicy, response);
  AddUnlessSet("X-Content-Type-Options", "nosniff", response);
  AddUnlessSet("Referrer-Policy", "same-origin", response);
  AddUnlessSet("Cross-Origin-Opener-Policy", "same-origin", response);
  AddUnlessSet("Cross-Origin-Resource-Policy", "same-origin", response);
  if (audience != Audience::kApi) return;
  AddUnlessSet("Cache-Control", "no-store", response);
  if (response->status == 401) {
    AddUnlessSet("WWW-Authenticate", "Bearer realm=\"tacho\"", response);
  }
}

BrowserGuard::BrowserGuard(Options options) : options_(std::move(options)) {}

bool BrowserGuard::IsOurs(absl::string_view sent) const {
  // The name may be written to its end, with the root's dot.
  const std::string host(absl::StripSuffix(config::HostOf(sent), "."));
  if (host.empty()) return false;
  if (IsAddress(host) || config::IsLoopback(host)) return true;
  if (absl::EqualsIgnoreCase(host, config::HostOf(options_.listen_address))) return true;
  const auto same = [&host](const std::string& ours) {
    return absl::EqualsIgnoreCase(config::HostOf(ours), host);
  };
  if (std::any_of(options_.hosts.begin(), options_.hosts.end(), same)) return true;
  return options_.tls != nullptr && HasName(*options_.tls->Current()->certificate, host);
}

std::optional<HttpResponse> BrowserGuard::Check(const HttpRequest& request,
                                                Audience audience) const {
  if (audience == Audience::kMachines) return std::nullopt;
  const absl::string_view host = request.Header("host");
  if (!IsOurs(host)) {
    return HttpResponse{
        .status = 421,
        .body = absl::StrCat("the collector does not know itself as '", host.substr(0, 255),
                             "': open it by its address, or add this name to listen.http_hosts\n")};
  }
  if (options_.require_certificate && !request.credentials.certificate.has_value()) {
    return ErrorResponse(errors::ErrorOf(
        errors::Failure::kForbidden,
        "this is only for clients with a certificate (listen.tls.client_certificates)"));
  }
  const absl::string_view site = request.Header("sec-fetch-site");
  if (audience == Audience::kApi && !site.empty() && site != "same-origin" && site != "none") {
    return ErrorResponse(errors::ErrorOf(errors::Failure::kForbidden,
                                         "pages of other sites may not ask the collector"));
  }
  return std::nullopt;
}

}  // namespace tacho::server::http
