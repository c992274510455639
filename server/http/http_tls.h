// TLS of the HTTP port, with OpenSSL.
#pragma once

#include <openssl/ossl_typ.h>

#include <optional>

#include "server/security/peer_certificate.h"
#include "server/security/tls_source.h"

namespace tacho::server::http {

// Makes `context` take certificate, key and client authorities from `source` anew for each
// connection. Clients are asked for certificates where the source says so, and what they show is
// verified, but none is turned away for having none: some pages are for everybody. False if OpenSSL
// refuses. `source` is not owned and must outlive `context`.
bool ConfigureTls(const security::TlsSource* source, SSL_CTX* context);

// The client's certificate; nullopt if it showed none.
std::optional<security::PeerCertificate> VerifiedPeer(const SSL& connection);

}  // namespace tacho::server::http
