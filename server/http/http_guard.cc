#include "server/http/http_guard.h"

#include "server/errors/error_table.h"
#include "server/http/error_response.h"

namespace tacho::server::http {
namespace {

HttpResponse Refusal(const absl::Status& status) {
  HttpResponse response = ErrorResponse(status);
  if (absl::IsUnauthenticated(status)) {
    response.headers.emplace_back("WWW-Authenticate",
                                  "Basic realm=\"tacho: any user, a token as password\"");
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"tacho\"");
  }
  return response;
}

}  // namespace

HttpResponse HttpGuard::Answer(
    const HttpRequest& request, security::Role role,
    absl::FunctionRef<HttpResponse(const security::Rights&)> page) const {
  if (require_certificate && !request.credentials.certificate.has_value()) {
    return Refusal(errors::ErrorOf(
        errors::Condition::kForbidden,
        "this page is only for clients with a certificate (listen.tls.client_certificates)"));
  }
  if (access == nullptr) return page(security::Caller::Anyone().rights());
  const auto caller = access->Admit(request.credentials, role);
  return caller.ok() ? page(caller->rights()) : Refusal(caller.status());
}

}  // namespace tacho::server::http
