#include "server/security/grpc_caller.h"

#include <grpc/grpc_security_constants.h>

#include "server/security/tokens.h"

namespace tacho::server::security {
namespace {

std::string AuthorizationOf(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  // Two are a mistake or an attempt: which one counted would be luck.
  if (found == metadata.end() || metadata.count("authorization") > 1) return "";
  return {found->second.data(), found->second.size()};
}

}  // namespace

Credentials CredentialsOf(const grpc::CallbackServerContext& context) {
  Credentials shown;
  shown.peer = context.peer();
  shown.token = TokenOf(AuthorizationOf(context), false);
  const auto connection = context.auth_context();
  if (connection == nullptr || !connection->IsPeerAuthenticated()) return shown;
  const auto pem = connection->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (pem.empty()) return shown;
  auto certificate = DescribePemCertificate(std::string(pem.front().data(), pem.front().size()));
  if (certificate.ok()) shown.certificate = *std::move(certificate);
  return shown;
}

absl::StatusOr<Caller> AdmitCall(const AccessControl* access,
                                 const grpc::CallbackServerContext& context, Role role) {
  if (access == nullptr) return Caller::Anyone();
  return access->Admit(CredentialsOf(context), role);
}

}  // namespace tacho::server::security
