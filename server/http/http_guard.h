// Lets callers in to pages and doors that are not for everybody.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/http/http_message.h"
#include "server/security/access_control.h"

namespace tacho::server::http {

// Decides who may see a page or write. Thread-safe. Its parts are not owned and must outlive it.
struct HttpGuard {
  const security::AccessControl* access = nullptr;  // Null: everybody may do everything.
  bool require_certificate = false;                 // listen.tls.client_certificates: require.
};

// The caller of a request, if it has the role.
//   UNAUTHENTICATED    no valid token or certificate.
//   PERMISSION_DENIED  it lacks the role, or the certificate that is required.
absl::StatusOr<security::Caller> AdmitRequest(const HttpGuard& guard, const HttpRequest& request,
                                              security::Role role);
// The answer to a caller that is not let in, with the challenges of a 401.
HttpResponse CallerRefusal(const absl::Status& status);

}  // namespace tacho::server::http
