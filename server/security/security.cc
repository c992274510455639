// Builds access control and TLS from one configuration, and looks every few seconds whether the
// certificate's files or what callers have shown is still valid. Refusals are counted and logged
// here, because peers cause them and must not fill a disk with them.
#include "server/security/security.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "proto/base/status_macros.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::security {
namespace {

grpc_ssl_client_certificate_request_type RequestType(ClientCertificates wanted) {
  switch (wanted) {
    case ClientCertificates::kNone:
      return GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    case ClientCertificates::kRequest:
      return GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    case ClientCertificates::kRequire:
      return GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
}

class TlsCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(const TlsSource* source) : source_(source) {
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            RequestType(source->client_certificates()), &TlsCredentials::Fetch, this));
  }
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }

  // Nobody asks for one: the services check calls, because they know what a call is about.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    std::abort();
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC calls it before each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsCredentials*>(self)->FetchNew(config);
  }

  grpc_ssl_certificate_config_reload_status FetchNew(grpc_ssl_server_certificate_config** config)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const TlsMaterialPtr material = source_->Current();
    absl::MutexLock lock(&mutex_);
    if (material == shown_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {material->key_pem.c_str(),
                                             material->certificate_pem.c_str()};
    // gRPC insists on authorities even if clients show no certificates; it then uses none of them.
    const std::string& roots =
        material->client_ca_pem.empty() ? material->certificate_pem : material->client_ca_pem;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    shown_ = material;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsSource* const source_;
  grpc_server_credentials* credentials_ = nullptr;
  absl::Mutex mutex_;
  TlsMaterialPtr shown_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> GrpcTlsCredentials(const TlsSource* source) {
  return std::make_shared<TlsCredentials>(source);
}

Security::Security(SecurityOptions options) : options_(std::move(options)) {
  if (options_.registry == nullptr) return;
  auto& refused = metrics::CounterFamily(options_.registry, "tacho_auth_refused_total");
  unauthenticated_ = &refused.Add({{"code", "UNAUTHENTICATED"}});
  not_allowed_ = &refused.Add({{"code", "PERMISSION_DENIED"}});
}

absl::StatusOr<std::unique_ptr<Security>> Security::Create(const config::v1::Collector& config,
                                                           SecurityOptions options) {
  TACHO_RETURN_IF_ERROR(CheckListen(config));
  std::unique_ptr<Security> security(new Security(std::move(options)));
  AccessControlOptions access;
  access.now = security->options_.now;
  access.on_refusal = [self = security.get()](const absl::Status& why, absl::string_view peer) {
    self->CountRefusal(why, peer);
  };
  TACHO_ASSIGN_OR_RETURN(auto control, AccessControl::Create(config.auth(), std::move(access)));
  TACHO_ASSIGN_OR_RETURN(auto tls, TlsSource::Create(config, security->options_.now));

  security->policy_ = std::make_unique<ListenPolicy>(config);
  security->access_ = std::move(control);
  security->tls_ = std::move(tls);
  security->grpc_credentials_ = security->tls_ == nullptr
                                    ? grpc::InsecureServerCredentials()
                                    : GrpcTlsCredentials(security->tls_.get());
  security->ShowTls();
  return security;
}

std::vector<process::Reloadable*> Security::reloadables() {
  std::vector<process::Reloadable*> parts = {policy_.get(), access_.get()};
  if (tls_ != nullptr) parts.push_back(tls_.get());
  return parts;
}

void Security::CountRefusal(const absl::Status& why, absl::string_view peer) const {
  prometheus::Counter* const counter =
      absl::IsUnauthenticated(why) ? unauthenticated_ : not_allowed_;
  if (counter != nullptr) counter->Increment();
  options_.log.Limited(
      log::Level::kWarn, "not let in",
      {{"peer", peer}, {"code", absl::StatusCodeToString(why.code())}, {"reason", why.message()}});
}

void Security::ShowTls() const {
  if (tls_ == nullptr || options_.registry == nullptr) return;
  // The registry returns the same gauge each time. Without TLS it has none.
  metrics::NewGauge(options_.registry, "tacho_tls_certificate_expiry_timestamp_seconds")
      .Set(absl::ToDoubleSeconds(tls_->Current()->not_after - absl::UnixEpoch()));
  metrics::NewGauge(options_.registry, "tacho_tls_certificate_reload_failed")
      .Set(tls_->last_failed() ? 1 : 0);
}

void Security::Watch(std::function<void()> recheck) {
  thread_.Start("security", RepeatingThread::Priority::kUsual, options_.round,
                [this, recheck = std::move(recheck)] {
                  if (tls_ != nullptr) {
                    const std::string news = tls_->Poll();
                    if (!news.empty()) options_.log.Info(news, {{"part", "security"}});
                    ShowTls();
                  }
                  recheck();
                });
}

}  // namespace tacho::server::security
