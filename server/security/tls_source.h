// The TLS material in force: what new connections are made with. Old connections keep theirs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/process/reloadable.h"
#include "server/security/tls_material.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::security {

// Thread-safe.
class TlsSource final : public process::Reloadable {
 public:
  // Null if the configuration has no TLS. Statuses as LoadTlsMaterial().
  static absl::StatusOr<std::unique_ptr<TlsSource>> Create(
      const config::v1::Collector& config, std::function<absl::Time()> now = absl::Now);

  ClientCertificates client_certificates() const { return client_certificates_; }
  TlsMaterialPtr Current() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the files again, and takes them if they have changed and are right. A certificate and a
  // key that are replaced one after the other are wrong in between: the old pair stays, and the
  // next Poll() takes the new one. Returns what to log; empty if there is nothing new to say.
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
  std::string failure_ ABSL_GUARDED_BY(mutex_);  // Of the last Poll(); empty if it was right.
};

}  // namespace tacho::server::security
