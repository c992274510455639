// Finds out who makes a gRPC call.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "server/security/access_control.h"

namespace tacho::server::security {

// Shown by the call's metadata and connection; for a call of the HTTP port, by its request and
// its connection there showed.
Credentials CredentialsOf(const grpc::CallbackServerContext& context);

// Whether the call comes from this process, as those of the HTTP port do.
bool IsInProcess(const grpc::CallbackServerContext& context);

// The name under which the call counts towards the limits of one peer: gRPC's name of its
// connection, or "http:" and the client's address for calls of the HTTP port.
std::string PeerOf(const grpc::CallbackServerContext& context);

// Lets the call in, or says why not; the first thing that a method does. `access` may be null,
// which lets everybody do everything.
//   UNAUTHENTICATED, PERMISSION_DENIED  as AccessControl::Admit().
absl::StatusOr<Caller> AdmitCall(const AccessControl* access,
                                 const grpc::CallbackServerContext& context, Role role);

}  // namespace tacho::server::security
