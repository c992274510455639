#include "server/http/http_guard.h"

#include "server/errors/error_table.h"

namespace tacho::server::http {

absl::StatusOr<security::Caller> AdmitRequest(const HttpGuard& guard, const HttpRequest& request,
                                              security::Role role) {
  if (guard.require_certificate && !request.credentials.certificate.has_value()) {
    return errors::ErrorOf(
        errors::Failure::kForbidden,
        "this page is only for clients with a certificate (listen.tls.client_certificates)");
  }
  if (guard.access == nullptr) return security::Caller::Anyone();
  return guard.access->Admit(request.credentials, role);
}

HttpResponse CallerRefusal(const absl::Status& status) {
  HttpResponse response = ErrorResponse(status);
  if (absl::IsUnauthenticated(status)) {
    response.headers.emplace_back("WWW-Authenticate",
                                  "Basic realm=\"tacho: any user, a token as password\"");
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"tacho\"");
  }
  return response;
}

}  // namespace tacho::server::http
