#include "server/security/grpc_caller.h"

#include <grpc/grpc_security_constants.h>

#include "absl/strings/str_cat.h"
#include "server/security/bridged_callers.h"
#include "server/security/tokens.h"

namespace tacho::server::security {
namespace {

constexpr char kInProcessPeer[] = "unknown";  // gRPC's word for a call without a socket.

std::string AuthorizationOf(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  // Two are a mistake or an attempt: which one counted would be luck.
  if (found == metadata.end() || metadata.count("authorization") > 1) return "";
  return {found->second.data(), found->second.size()};
}

// Whether the HTTP port made the call. The handle alone cannot be guessed; a call from a socket,
// whose peer begins with "ipv4:", "ipv6:" or "unix:", could not use one that leaked either.
bool IsBridged(const grpc::CallbackServerContext& context, Credentials* shown) {
  const auto found = context.client_metadata().find(kBridgedCallerMetadata);
  if (found == context.client_metadata().end() || !IsInProcess(context)) return false;
  return BridgedCallers::OfProcess().Find({found->second.data(), found->second.size()}, shown);
}

}  // namespace

Credentials CredentialsOf(const grpc::CallbackServerContext& context) {
  Credentials shown;
  if (IsBridged(context, &shown)) return shown;
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

bool IsInProcess(const grpc::CallbackServerContext& context) {
  return context.peer() == kInProcessPeer;
}

std::string PeerOf(const grpc::CallbackServerContext& context) {
  Credentials shown;
  return IsBridged(context, &shown) ? absl::StrCat("http:", shown.peer) : context.peer();
}

absl::StatusOr<Caller> AdmitCall(const AccessControl* access,
                                 const grpc::CallbackServerContext& context, Role role) {
  if (access == nullptr) return Caller::Anyone();
  return access->Admit(CredentialsOf(context), role);
}

}  // namespace tacho::server::security
