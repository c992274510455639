// A server's certificate, key and client authorities: read from files, checked as a whole, and
// replaced while the collector runs. New connections use the newest; old connections keep theirs.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/pem_files.h"
#include "server/process/reloadable.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::security {

enum class ClientCertificates { kNone, kRequest, kRequire };

// Immutable, so thread-safe: OpenSSL counts references to its own objects.
struct TlsMaterial {
  // As gRPC wants it.
  std::string certificate_pem;
  std::string key_pem;
  std::string client_ca_pem;  // Empty: clients are not asked for certificates.
  // As OpenSSL wants it. Only the last two may be null, without client_ca.
  config::OpenSslPtr<X509> certificate{nullptr, X509_free};
  config::Certificates chain;  // The certificates behind it in its file.
  config::OpenSslPtr<EVP_PKEY> key{nullptr, EVP_PKEY_free};
  config::OpenSslPtr<X509_STORE> client_store{nullptr, X509_STORE_free};
  config::Certificates client_authorities;

  std::string subject;   // For people.
  absl::Time not_after;  // When the certificate expires.
  std::string digest;    // Hash of all bytes above: equal if nothing has changed.
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

// The material in force. Thread-safe.
class TlsSource final : public process::Reloadable {
 public:
  // Null if the configuration has no TLS. Statuses as LoadTlsMaterial().
  static absl::StatusOr<std::unique_ptr<TlsSource>> Create(
      const config::v1::Collector& config, std::function<absl::Time()> now = absl::Now);

  ClientCertificates client_certificates() const { return client_certificates_; }
  TlsMaterialPtr Current() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the files again, and uses them if they have changed and are valid. While a certificate
  // and its key are replaced one after the other, they do not match: the old pair stays in force,
  // and the next Poll() takes the new one. Returns what to log; empty if nothing is new.
  std::string Poll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Reloadable; takes the paths of listen.tls, and what they hold now.
  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override;

  // How often new material was taken since the start, and whether the last Poll() failed.
  uint64_t changes() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool last_failed() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  TlsSource(const config::v1::Collector::Tls& tls, TlsMaterialPtr material,
            std::function<absl::Time()> now);
  void Take(const config::v1::Collector::Tls& tls, TlsMaterialPtr material)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const ClientCertificates client_certificates_;
  const std::function<absl::Time()> now_;
  mutable absl::Mutex mutex_;
  config::v1::Collector::Tls tls_ ABSL_GUARDED_BY(mutex_);
  TlsMaterialPtr material_ ABSL_GUARDED_BY(mutex_);  // Never null.
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string failure_ ABSL_GUARDED_BY(mutex_);  // From the last Poll(); empty if it succeeded.
};

}  // namespace tacho::server::security
