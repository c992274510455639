#include "server/security/tls_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace tacho::server::security {
namespace {

using Tls = config::v1::Collector::Tls;

bool SamePaths(const Tls& a, const Tls& b) {
  return a.certificate() == b.certificate() && a.key() == b.key() && a.client_ca() == b.client_ca();
}

}  // namespace

TlsSource::TlsSource(const Tls& tls, TlsMaterialPtr material, std::function<absl::Time()> now)
    : client_certificates_(ClientCertificatesOf(tls)),
      now_(std::move(now)),
      tls_(tls),
      material_(std::move(material)) {}

absl::StatusOr<std::unique_ptr<TlsSource>> TlsSource::Create(const config::v1::Collector& config,
                                                             std::function<absl::Time()> now) {
  const Tls& tls = config.listen().tls();
  if (!TlsIsOn(tls)) return nullptr;
  TACHO_ASSIGN_OR_RETURN(auto material, LoadTlsMaterial(tls, now()));
  return std::unique_ptr<TlsSource>(new TlsSource(tls, std::move(material), std::move(now)));
}

TlsMaterialPtr TlsSource::Current() const {
  absl::MutexLock lock(&mutex_);
  return material_;
}

void TlsSource::Take(const Tls& tls, TlsMaterialPtr material) {
  absl::MutexLock lock(&mutex_);
  tls_ = tls;
  failure_.clear();
  if (material->digest == material_->digest) return;
  material_ = std::move(material);
  ++changes_;
}

std::string TlsSource::Poll() {
  Tls tls;
  {
    absl::MutexLock lock(&mutex_);
    tls = tls_;
  }
  auto loaded = LoadTlsMaterial(tls, now_());
  absl::MutexLock lock(&mutex_);
  if (!SamePaths(tls, tls_)) return "";  // A reload was faster.
  if (!loaded.ok()) {
    const std::string failure(loaded.status().message());
    if (std::exchange(failure_, failure) == failure) return "";
    return absl::StrCat("the certificate in use stays: ", failure);
  }
  failure_.clear();
  if ((*loaded)->digest == material_->digest) return "";
  material_ = *std::move(loaded);
  ++changes_;
  return absl::StrCat("new connections see the certificate ", material_->subject, ", valid until ",
                      absl::FormatTime(material_->not_after, absl::UTCTimeZone()));
}

absl::StatusOr<std::function<void()>> TlsSource::Prepare(const config::v1::Collector& config) {
  const Tls& tls = config.listen().tls();
  if (!TlsIsOn(tls)) {
    return absl::FailedPreconditionError("listen.tls: turning TLS off needs a restart");
  }
  auto material = LoadTlsMaterial(tls, now_());
  if (!material.ok()) return material.status();
  return [this, tls, material = *std::move(material)] { Take(tls, material); };
}

uint64_t TlsSource::changes() const {
  absl::MutexLock lock(&mutex_);
  return changes_;
}

bool TlsSource::last_failed() const {
  absl::MutexLock lock(&mutex_);
  return !failure_.empty();
}

}  // namespace tacho::server::security
