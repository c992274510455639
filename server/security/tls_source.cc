// Reads the files of listen.tls as one unit: a certificate with another's key, or a file that is
// half written, changes nothing and leaves the old material in force.
#include "server/security/tls_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/checked_file.h"
#include "proto/base/status_macros.h"
#include "server/security/tokens.h"

namespace tacho::server::security {
namespace {

using Tls = config::v1::Collector::Tls;

constexpr char kCertificateKey[] = "listen.tls.certificate";
constexpr char kKeyKey[] = "listen.tls.key";
constexpr char kClientCaKey[] = "listen.tls.client_ca";

absl::Status WrongTls(absl::string_view key, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(key, ": ", problem));
}

// `status` with the key in front, if it is an error.
absl::Status Under(const char* key, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(key, ": ", status.message()));
}

absl::Status LoadClientCa(const Tls& tls, absl::Time now, TlsMaterial* material) {
  const std::string& path = tls.client_ca();
  TACHO_ASSIGN_OR_RETURN(auto pem, config::ReadCheckedFile(path, config::FileTrust::kTrusted));
  TACHO_ASSIGN_OR_RETURN(auto authorities, config::ParseCertificates(path, pem));
  material->client_store.reset(X509_STORE_new());
  for (const auto& authority : authorities) {
    TACHO_RETURN_IF_ERROR(config::CheckTimes(path, *authority, now));
    X509_STORE_add_cert(material->client_store.get(), authority.get());
  }
  material->client_ca_pem = std::move(pem);
  material->client_authorities = std::move(authorities);
  return absl::OkStatus();
}

absl::Status LoadCertificate(const Tls& tls, absl::Time now, TlsMaterial* material) {
  const std::string& path = tls.certificate();
  TACHO_ASSIGN_OR_RETURN(auto pem, config::ReadCheckedFile(path, config::FileTrust::kTrusted));
  auto chain = config::ParseCertificates(path, pem);
  if (!chain.ok()) return chain.status();
  TACHO_RETURN_IF_ERROR(config::CheckTimes(path, *chain->front(), now));
  material->certificate_pem = std::move(pem);
  material->certificate = std::move(chain->front());
  chain->erase(chain->begin());
  material->chain = *std::move(chain);
  return absl::OkStatus();
}

absl::Status LoadKey(const Tls& tls, TlsMaterial* material) {
  TACHO_ASSIGN_OR_RETURN(auto pem, config::ReadCheckedFile(tls.key(), config::FileTrust::kSecret));
  auto key = config::ParsePrivateKey(tls.key(), pem);
  if (!key.ok()) return key.status();
  material->key_pem = std::move(pem);
  material->key = *std::move(key);
  return config::CheckPair(tls.certificate(), *material->certificate, tls.key(), *material->key);
}

absl::Status CheckKeys(const Tls& tls) {
  if (tls.certificate().empty())
    return WrongTls(kCertificateKey, "is missing, but listen.tls.key is set");
  if (tls.key().empty()) return WrongTls(kKeyKey, "is missing, but listen.tls.certificate is set");
  const bool asks = ClientCertificatesOf(tls) != ClientCertificates::kNone;
  if (asks && tls.client_ca().empty()) {
    return WrongTls(kClientCaKey, absl::StrCat("is missing: listen.tls.client_certificates is ",
                                               tls.client_certificates(),
                                               ", which needs the authorities that sign them"));
  }
  if (!asks && !tls.client_ca().empty()) {
    return WrongTls("listen.tls.client_certificates",
                    "is none, but listen.tls.client_ca is set; expected request or require");
  }
  return absl::OkStatus();
}

bool SamePaths(const Tls& a, const Tls& b) {
  return a.certificate() == b.certificate() && a.key() == b.key() && a.client_ca() == b.client_ca();
}

}  // namespace

bool TlsIsOn(const Tls& tls) {
  return !tls.certificate().empty() || !tls.key().empty() || !tls.client_ca().empty() ||
         ClientCertificatesOf(tls) != ClientCertificates::kNone;
}

ClientCertificates ClientCertificatesOf(const Tls& tls) {
  if (tls.client_certificates() == "require") return ClientCertificates::kRequire;
  if (tls.client_certificates() == "request") return ClientCertificates::kRequest;
  return ClientCertificates::kNone;
}

absl::StatusOr<TlsMaterialPtr> LoadTlsMaterial(const Tls& tls, absl::Time now) {
  TACHO_RETURN_IF_ERROR(CheckKeys(tls));
  auto material = std::make_shared<TlsMaterial>();
  if (auto s = LoadCertificate(tls, now, material.get()); !s.ok()) {
    return Under(kCertificateKey, s);
  }
  if (auto s = LoadKey(tls, material.get()); !s.ok()) return Under(kKeyKey, s);
  if (!tls.client_ca().empty()) {
    if (auto s = LoadClientCa(tls, now, material.get()); !s.ok()) return Under(kClientCaKey, s);
  }
  material->subject = config::SubjectOf(*material->certificate);
  material->not_after = config::ToAbslTime(X509_get0_notAfter(material->certificate.get()));
  material->digest =
      Sha256(absl::StrCat(Sha256(material->certificate_pem), Sha256(material->key_pem),
                          Sha256(material->client_ca_pem)));
  return material;
}

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
    return absl::StrCat("the old certificate stays in use: ", failure);
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
