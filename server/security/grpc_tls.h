// gRPC's port with the TLS material of a TlsSource: each new connection asks for the newest.
#pragma once

#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "server/security/tls_source.h"

namespace tacho::server::security {

// Not grpc::experimental's providers: theirs read the files themselves, one by one and without our
// checks, so that a reload could not be all or nothing. `source` is not owned; it and what is
// returned must outlive the server.
std::shared_ptr<grpc::ServerCredentials> GrpcTlsCredentials(const TlsSource* source);

}  // namespace tacho::server::security
