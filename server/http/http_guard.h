// Who may see which page.
#pragma once

#include "absl/functional/function_ref.h"
#include "server/http/http_server.h"
#include "server/security/access_control.h"

namespace tacho::server::http {

// Thread-safe. Not owned are the parts; they must outlive the guard.
struct HttpGuard {
  const security::AccessControl* access = nullptr;  // Null: everybody may see everything.
  bool require_certificate = false;                 // listen.tls.client_certificates: require.

  // `page` for a request whose caller has the role; else
  //   401  and how to show a token
  //   403  and what is lacking: a role, or a client certificate
  HttpResponse Answer(const HttpRequest& request, security::Role role,
                      absl::FunctionRef<HttpResponse(const security::Rights&)> page) const;
};

}  // namespace tacho::server::http
