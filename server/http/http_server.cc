// Joins the parts of the HTTP port: the front has sockets and deadlines, http_message.h reads and
// writes, the router decides; here are TLS and the calls of handlers.
#include "server/http/http_server.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/config/config_value.h"
#include "server/edge/listener.h"
#include "server/errors/error_table.h"
#include "server/http/content.h"
#include "server/http/http_connection.h"
#include "server/metrics/metric_families.h"
#include "server/security/peer_certificate.h"
#include "server/security/tokens.h"

namespace tacho::server::http {
namespace {

constexpr char kNoRoute[] = "other";

const prometheus::Histogram::BucketBoundaries& DurationBounds() {
  static const auto* const kBounds =
      new prometheus::Histogram::BucketBoundaries{0.001, 0.01, 0.1, 1, 10, 60};
  return *kBounds;
}

using Chain = std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)>;

bool UseCertificate(const security::TlsMaterial& material, SSL* connection) {
  const Chain chain(sk_X509_new_null(), [](STACK_OF(X509) * all) { sk_X509_free(all); });
  for (const auto& one : material.chain) sk_X509_push(chain.get(), one.get());
  return SSL_use_cert_and_key(connection, material.certificate.get(), material.key.get(),
                              chain.get(), /*override=*/1) == 1;
}

// The certificates of clients are verified, but a client without a certificate is not turned away:
// some pages are for everybody.
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

BrowserGuard GuardOf(const HttpServerOptions& options) {
  return BrowserGuard({options.address, options.hosts, options.tls, options.require_certificate});
}

}  // namespace

HttpServer::HttpServer(HttpServerOptions options)
    : options_(std::move(options)),
      router_(options_.routes, GuardOf(options_)),
      tls_(nullptr, SSL_CTX_free) {
  if (options_.registry == nullptr) return;
  requests_ = &metrics::CounterFamily(options_.registry, "tacho_http_requests_total");
  durations_ = &metrics::HistogramFamily(options_.registry, "tacho_http_request_duration_seconds");
}

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
  front.intake = [this](const HttpConnection& connection) { return TakeIn(connection); };
  front.serve = Serve;
  if (requests_ != nullptr) {
    front.count = [this](const Route* route, int status, absl::Duration took) {
      Count(route, status, took);
    };
  }
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

HttpFront::Intake HttpServer::TakeIn(const HttpConnection& connection) const {
  HttpFront::Intake intake;
  intake.form.now = options_.now;
  auto request = ParseRequest(connection.head());
  if (!request.ok()) {  // Whether a body follows is not known.
    intake.drains = true;
    intake.refusal = ErrorResponse(request.status());
    return intake;
  }
  intake.request = *std::move(request);
  HttpRequest& asked = intake.request;
  asked.credentials = CredentialsOf(asked, connection);
  Ruling ruling = router_.Judge(asked);
  intake.route = ruling.route;
  intake.refusal = std::move(ruling.refusal);
  intake.body_bytes = ruling.body_bytes;
  intake.in_chunks = ruling.in_chunks;
  intake.drains = asked.has_body && ruling.body_bytes == 0;
  intake.asks_to_continue = absl::EqualsIgnoreCase(asked.Header("expect"), "100-continue");
  HttpExchange::Form& form = intake.form;
  if (ruling.route != nullptr) form.audience = ruling.route->audience;
  form.head_only = asked.method == "HEAD";
  form.chunked = asked.minor_version > 0;
  form.keep_open = asked.KeepsOpen() && !intake.drains &&
                   connection.requests_before() + 1 < options_.limits.requests;
  form.packs = AcceptsGzip(asked.Header("accept-encoding"));
  return intake;
}

void HttpServer::Serve(const std::shared_ptr<HttpExchange>& exchange) try {
  const Route& route = *exchange->route;
  if (route.later != nullptr) {
    return route.later(std::move(exchange->request), MakeResponder(exchange));
  }
  exchange->Answer(route.handler(exchange->request));
} catch (...) {  // It would end the process; its text may hold what clients must not see.
  exchange->Abandon();
}

void HttpServer::Count(const Route* route, int status, absl::Duration took) const {
  const std::string name = route == nullptr ? kNoRoute : route->path;
  requests_->Add({{"route", name}, {"status", absl::StrCat(status)}}).Increment();
  durations_->Add({{"route", name}}, DurationBounds()).Observe(absl::ToDoubleSeconds(took));
}

}  // namespace tacho::server::http
