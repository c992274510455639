// TLS between two buffers in memory, which TcpSocket fills and empties: so every step has the
// socket's deadline, and OpenSSL never writes to a socket itself, which could raise SIGPIPE.
#include "agent/sources/fetch/https_get.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/sources/fetch/tcp_socket.h"
#include "proto/base/clock.h"
#include "proto/base/pem_files.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

constexpr size_t kTlsPiece = 16 << 10;  // The most that a TLS record carries.

std::string TlsError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "the connection ended" : reason;
}

absl::StatusOr<config::OpenSslPtr<SSL_CTX>> MakeTlsContext(const TlsAuthorities& authorities) {
  TACHO_ASSIGN_OR_RETURN(const auto trusted,
                         config::ParseCertificates(authorities.path, authorities.pem));
  config::OpenSslPtr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return absl::UnavailableError(absl::StrCat("OpenSSL cannot be set up: ", TlsError()));
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  for (const auto& certificate : trusted) {
    // One that is listed twice is added once, and no failure.
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), certificate.get()) != 1) {
      return absl::UnavailableError(
          absl::StrCat("OpenSSL cannot take an authority of ", authorities.path, ": ", TlsError()));
    }
  }
  return context;
}

// Names the host that the certificate must be for. A server may choose its certificate by a name.
bool ExpectHost(const std::string& host, SSL* ssl) {
  unsigned char address[sizeof(in6_addr)];
  if (inet_pton(AF_INET, host.c_str(), address) == 1 ||
      inet_pton(AF_INET6, host.c_str(), address) == 1) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1;
  }
  return SSL_set1_host(ssl, host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

// One connection. One thread.
class TlsConnection {
 public:
  TlsConnection(const TcpSocket& socket, absl::Time deadline, std::string where)
      : socket_(socket), deadline_(deadline), where_(std::move(where)) {}

  absl::Status Open(SSL_CTX* context, const std::string& host) {
    ssl_.reset(SSL_new(context));
    if (ssl_ == nullptr || !ExpectHost(host, ssl_.get())) return Broken();
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    if (in_ == nullptr || out_ == nullptr) {
      BIO_free(in_);
      BIO_free(out_);
      return Broken();
    }
    SSL_set_bio(ssl_.get(), in_, out_);  // Owns both.
    return DriveOn([&] { return SSL_connect(ssl_.get()); });
  }

  absl::Status Send(absl::string_view bytes) {
    return DriveOn(
        [&] { return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); });
  }

  // Up to `size` bytes; 0 at the end that TLS has marked.
  absl::StatusOr<size_t> Receive(char* buffer, size_t size) {
    return Drive([&] { return SSL_read(ssl_.get(), buffer, static_cast<int>(size)); });
  }

 private:
  absl::Status Broken() const {
    const long verdict = ssl_ == nullptr ? X509_V_OK : SSL_get_verify_result(ssl_.get());
    if (verdict == X509_V_OK) {
      return absl::UnavailableError(absl::StrCat("no TLS with ", where_, ": ", TlsError()));
    }
    ERR_clear_error();
    return absl::UnauthenticatedError(
        absl::StrCat("the certificate of ", where_,
                     " is not trusted: ", X509_verify_cert_error_string(verdict)));
  }

  // Repeats `step` while it wants bytes from the other side. Returns what it has done: 0 at the
  // end.
  absl::StatusOr<size_t> Drive(absl::FunctionRef<int()> step) {
    for (;;) {
      ERR_clear_error();
      const int done = step();
      const int error = done > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), done);
      // Also what it says to a server that it refuses; that server need not hear it.
      if (const absl::Status sent = Flush(); !sent.ok() && error == SSL_ERROR_NONE) return sent;
      if (error == SSL_ERROR_NONE) return static_cast<size_t>(done);
      if (error == SSL_ERROR_ZERO_RETURN) return 0;
      if (error != SSL_ERROR_WANT_READ) return Broken();
      TACHO_RETURN_IF_ERROR(Fill());
    }
  }

  // The same where the end comes too early.
  absl::Status DriveOn(absl::FunctionRef<int()> step) {
    TACHO_ASSIGN_OR_RETURN(const size_t done, Drive(step));
    return done == 0 ? Broken() : absl::OkStatus();
  }

  absl::Status Flush() {
    char buffer[kTlsPiece];
    for (;;) {
      const int got = BIO_read(out_, buffer, sizeof(buffer));
      if (got <= 0) return absl::OkStatus();
      TACHO_RETURN_IF_ERROR(socket_.Send({buffer, static_cast<size_t>(got)}, deadline_));
    }
  }

  absl::Status Fill() {
    char buffer[kTlsPiece];
    TACHO_ASSIGN_OR_RETURN(const size_t got, socket_.Receive(buffer, sizeof(buffer), deadline_));
    if (got == 0) {
      return absl::UnavailableError(absl::StrCat(where_, " ended the connection within TLS"));
    }
    BIO_write(in_, buffer, static_cast<int>(got));
    return absl::OkStatus();
  }

  const TcpSocket& socket_;
  const absl::Time deadline_;
  const std::string where_;
  config::OpenSslPtr<SSL> ssl_{nullptr, SSL_free};
  BIO* in_ = nullptr;   // The bytes that have come.
  BIO* out_ = nullptr;  // Bytes to send.
};

}  // namespace

absl::StatusOr<HttpResponse> HttpsGet(const HttpUrl& url, const TlsAuthorities& authorities,
                                      const HttpGetOptions& options) {
  const absl::Time deadline = MonotonicNow() + options.timeout;
  TACHO_ASSIGN_OR_RETURN(const auto context, MakeTlsContext(authorities));
  TACHO_ASSIGN_OR_RETURN(const auto socket, ConnectTcp(url.host, url.port, deadline));
  TlsConnection connection(*socket, deadline, url.authority());
  TACHO_RETURN_IF_ERROR(connection.Open(context.get(), url.host));
  TACHO_RETURN_IF_ERROR(connection.Send(HttpRequest(url, options)));
  return ReceiveAnswer(options,
                       [&](char* buffer, size_t size) { return connection.Receive(buffer, size); });
}

}  // namespace tacho::agent
