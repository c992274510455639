// Joins the parts of the HTTP port: the front has sockets and deadlines, http_message.h reads and
// writes; here are routes, TLS, and how a body is packed.
#include "server/http/http_server.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/config/config_value.h"
#include "server/edge/listener.h"
#include "server/errors/error_table.h"
#include "server/http/content.h"
#include "server/http/http_connection.h"
#include "server/security/peer_certificate.h"
#include "server/security/tokens.h"

namespace tacho::server::http {
namespace {

// RFC 9112, 3, asks for 8000 bytes at least.
constexpr size_t kMaxTargetBytes = 8 << 10;
// Bodies smaller than this are not worth packing.
constexpr size_t kMinGzipBytes = 1024;

using Chain = std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)>;

bool UseCertificate(const security::TlsMaterial& material, SSL* connection) {
  const Chain chain(sk_X509_new_null(), [](STACK_OF(X509) * all) { sk_X509_free(all); });
  for (const auto& one : material.chain) sk_X509_push(chain.get(), one.get());
  return SSL_use_cert_and_key(connection, material.certificate.get(), material.key.get(),
                              chain.get(), /*override=*/1) == 1;
}

// What clients show is verified, but a client without a certificate is not turned away: some pages
// are for everybody.
bool AskForCertificate(const security::TlsMaterial& material, SSL* connection) {
  STACK_OF(X509_NAME)* names = sk_X509_NAME_new_null();
  for (const auto& authority : material.client_authorities) {
    sk_X509_NAME_push(names, X509_NAME_dup(X509_get_subject_name(authority.get())));
  }
  SSL_set0_CA_list(connection, names);
  SSL_set_verify(connection, SSL_VERIFY_PEER, nullptr);
  return SSL_set1_verify_cert_store(connection, material.client_store.get()) == 1;
}

// OpenSSL calls it in each handshake, before it needs any of this: so each connection gets the
// certificate, key and client authorities of its moment.
int OnHandshake(SSL* connection, void* source) {
  const security::TlsMaterialPtr material =
      static_cast<const security::TlsSource*>(source)->Current();
  if (!UseCertificate(*material, connection)) return 0;
  if (material->client_store == nullptr) return 1;
  return AskForCertificate(*material, connection) ? 1 : 0;
}

// False if OpenSSL refuses.
bool ConfigureTls(const security::TlsSource* source, SSL_CTX* context) {
  SSL_CTX_set_cert_cb(context, &OnHandshake, const_cast<security::TlsSource*>(source));
  // A resumed session would skip the certificates, and with them what has changed since.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

// nullopt if the client showed none.
std::optional<security::PeerCertificate> VerifiedPeer(const SSL& connection) {
  const X509* const certificate = SSL_get0_peer_certificate(&connection);
  if (certificate == nullptr || SSL_get_verify_result(&connection) != X509_V_OK) {
    return std::nullopt;
  }
  return security::DescribeCertificate(*certificate);
}

security::Credentials CredentialsOf(const HttpRequest& request, const HttpConnection& connection) {
  security::Credentials shown;
  shown.peer = edge::HostOf(connection.peer());
  if (request.CountOf("authorization") == 1) {
    shown.token = security::TokenOf(request.Header("authorization"), true);
  }
  if (connection.tls() != nullptr) shown.certificate = VerifiedPeer(*connection.tls());
  return shown;
}

void Pack(const HttpRequest& request, HttpResponse* response) {
  if (response->body.size() < kMinGzipBytes || !AcceptsGzip(request.Header("accept-encoding"))) {
    return;
  }
  auto packed = Gzip(response->body);
  if (!packed.has_value()) return;
  response->body = *std::move(packed);
  response->headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace

HttpServer::HttpServer(HttpServerOptions options)
    : options_(std::move(options)), tls_(nullptr, SSL_CTX_free) {}

HttpServer::~HttpServer() { Stop(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(options)));
  TACHO_RETURN_IF_ERROR(server->Listen());
  return server;
}

absl::Status HttpServer::Listen() {
  TACHO_RETURN_IF_ERROR(config::CheckAddress(options_.address));
  if (options_.tls != nullptr) {
    tls_.reset(SSL_CTX_new(TLS_server_method()));
    if (tls_ == nullptr || !ConfigureTls(options_.tls, tls_.get())) {
      return absl::UnavailableError("OpenSSL cannot be set up");
    }
  }
  auto listener = edge::Listener::Bind(options_.address);
  if (!listener.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options_.address, ": ",
                                               listener.status().message(),
                                               "; is another process using it?"));
  }
  HttpFront::Options front;
  front.limits = options_.limits;
  front.tls = tls_.get();
  front.registry = options_.registry;
  front.serve = [this](const HttpConnection& connection) { return Serve(connection); };
  front.refuse = [this](const absl::Status& why) {
    return WriteResponse(ErrorResponse(why, ++refusals_), options_.now());
  };
  TACHO_ASSIGN_OR_RETURN(front_, HttpFront::Start(*std::move(listener), std::move(front)));
  return absl::OkStatus();
}

void HttpServer::Stop() {
  absl::MutexLock lock(&mutex_);
  if (front_ != nullptr) front_->Stop();
}

HttpFront::Served HttpServer::Serve(const HttpConnection& connection) const try {
  auto request = ParseRequest(connection.head());
  if (!request.ok()) {  // Whether a body follows is not known.
    return {.bytes = WriteResponse(ErrorResponse(request.status()), options_.now()), .drain = true};
  }
  request->credentials = CredentialsOf(*request, connection);
  HttpResponse response = Handle(*request);
  response.headers.emplace_back("Vary", "Accept, Accept-Encoding");
  Pack(*request, &response);
  return {.bytes = WriteResponse(response, options_.now(), /*with_body=*/request->method != "HEAD"),
          .drain = request->has_body};
} catch (...) {  // Memory ran out; an exception that left the thread would end the process.
  const absl::Status failed = errors::ErrorOf(errors::Failure::kInternal, "the request failed");
  return {.bytes = WriteResponse(ErrorResponse(failed), options_.now())};
}

HttpResponse HttpServer::Handle(const HttpRequest& request) const {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  // The body of a GET means nothing, and is not looked at. Nobody waits for "100 Continue": the
  // answer itself comes before any body (RFC 9110, 10.1.1).
  if (!reads && request.has_body) {
    return ErrorResponse(errors::ErrorOf(errors::Failure::kTooLarge, "requests here have no body"));
  }
  if (request.target_bytes > kMaxTargetBytes) {
    return {
        .status = 414,
        .body = absl::StrCat("the request's target has more than ", kMaxTargetBytes, " bytes\n")};
  }
  // One header could ask for thousands of overlapping copies of a page.
  if (request.CountOf("range") > 0) return {.status = 416};
  for (const Route& route : options_.routes) {
    if (!reads || route.path != request.path) continue;
    try {
      return route.handler(request);
    } catch (...) {  // The exception's text may hold what clients must not see.
      return ErrorResponse(errors::ErrorOf(errors::Failure::kInternal, "the page failed"));
    }
  }
  return ErrorResponse(
      errors::ErrorOf(errors::Failure::kNotFound, "No such page. / lists the pages."));
}

}  // namespace tacho::server::http
