#include "server/security/grpc_tls.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <cstdlib>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

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

  // Nobody asks for one: calls are looked at by the services, which know what they are about.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    std::abort();
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC's, before each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsCredentials*>(self)->FetchNew(config);
  }

  grpc_ssl_certificate_config_reload_status FetchNew(grpc_ssl_server_certificate_config** config)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const TlsMaterialPtr material = source_->Current();
    absl::MutexLock lock(&mutex_);
    if (material == told_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {material->key_pem.c_str(),
                                             material->certificate_pem.c_str()};
    // gRPC insists on authorities even where clients are not asked for certificates; there any will
    // do, for they are not used.
    const std::string& roots =
        material->client_ca_pem.empty() ? material->certificate_pem : material->client_ca_pem;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    told_ = material;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsSource* const source_;
  grpc_server_credentials* credentials_ = nullptr;
  absl::Mutex mutex_;
  TlsMaterialPtr told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> GrpcTlsCredentials(const TlsSource* source) {
  return std::make_shared<TlsCredentials>(source);
}

}  // namespace tacho::server::security
