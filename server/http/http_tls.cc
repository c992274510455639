#include "server/http/http_tls.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace tacho::server::http {
namespace {

using Chain = std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)>;

bool UseCertificate(const security::TlsMaterial& material, SSL* connection) {
  const Chain chain(sk_X509_new_null(), [](STACK_OF(X509) * all) { sk_X509_free(all); });
  for (const auto& one : material.chain) sk_X509_push(chain.get(), one.get());
  return SSL_use_cert_and_key(connection, material.certificate.get(), material.key.get(),
                              chain.get(), /*override=*/1) == 1;
}

bool AskForCertificate(const security::TlsMaterial& material, SSL* connection) {
  STACK_OF(X509_NAME)* names = sk_X509_NAME_new_null();
  for (const auto& authority : material.client_authorities) {
    sk_X509_NAME_push(names, X509_NAME_dup(X509_get_subject_name(authority.get())));
  }
  SSL_set0_CA_list(connection, names);
  SSL_set_verify(connection, SSL_VERIFY_PEER, nullptr);
  return SSL_set1_verify_cert_store(connection, material.client_store.get()) == 1;
}

// OpenSSL's, in each handshake, before it needs any of this.
int OnHandshake(SSL* connection, void* source) {
  const security::TlsMaterialPtr material =
      static_cast<const security::TlsSource*>(source)->Current();
  if (!UseCertificate(*material, connection)) return 0;
  if (material->client_store == nullptr) return 1;
  return AskForCertificate(*material, connection) ? 1 : 0;
}

}  // namespace

bool ConfigureTls(const security::TlsSource* source, SSL_CTX* context) {
  SSL_CTX_set_cert_cb(context, &OnHandshake, const_cast<security::TlsSource*>(source));
  // A resumed session would skip the certificates, and with them what has changed since.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

std::optional<security::PeerCertificate> VerifiedPeer(const SSL& connection) {
  const X509* const certificate = SSL_get0_peer_certificate(&connection);
  if (certificate == nullptr || SSL_get_verify_result(&connection) != X509_V_OK) {
    return std::nullopt;
  }
  return security::DescribeCertificate(*certificate);
}

}  // namespace tacho::server::http
