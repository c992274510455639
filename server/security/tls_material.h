// A server's certificate, key and client authorities, read from files and checked as a whole.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/pem_files.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::security {

enum class ClientCertificates { kNone, kRequest, kRequire };

// Immutable, so thread-safe: OpenSSL counts references to its own objects.
struct TlsMaterial {
  // As gRPC wants it.
  std::string certificate_pem;
  std::string key_pem;
  std::string client_ca_pem;  // Empty: clients are not asked for certificates.
  // As OpenSSL wants it; none is null but the last two without client_ca.
  config::OpenSslPtr<X509> certificate{nullptr, X509_free};
  config::Certificates chain;  // What follows the certificate in its file.
  config::OpenSslPtr<EVP_PKEY> key{nullptr, EVP_PKEY_free};
  config::OpenSslPtr<X509_STORE> client_store{nullptr, X509_STORE_free};
  config::Certificates client_authorities;

  std::string subject;   // For people.
  absl::Time not_after;  // Of the certificate.
  std::string digest;    // Of all bytes above: equal if nothing has changed.
};
using TlsMaterialPtr = std::shared_ptr<const TlsMaterial>;

// Whether there is a certificate in the configuration, and so TLS.
bool TlsIsOn(const config::v1::Collector::Tls& tls);
ClientCertificates ClientCertificatesOf(const config::v1::Collector::Tls& tls);

// Reads and checks the files of `tls`, which must be on. Each text begins with the key, names the
// file and says what to do.
//   INVALID_ARGUMENT     keys that need or exclude each other; no PEM; a key that is not the
//                        certificate's; expired, or not valid yet, at `now`.
//   others               as config::ReadCheckedFile(); the key must be a secret.
absl::StatusOr<TlsMaterialPtr> LoadTlsMaterial(const config::v1::Collector::Tls& tls,
                                               absl::Time now);

}  // namespace tacho::server::security
