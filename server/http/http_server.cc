#include "server/http/http_server.h"

#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/status_macros.h"
#include "server/edge/listener.h"
#include "server/errors/error_table.h"
#include "server/http/accept.h"
#include "server/http/error_response.h"
#include "server/http/gzip.h"
#include "server/http/http_connection.h"
#include "server/http/http_front.h"
#include "server/http/http_tls.h"
#include "server/security/authorization_header.h"

namespace tacho::server::http {
namespace {

// httplib accepts no 0 here. Nothing that is served reads a body.
constexpr size_t kMaxRequestBodyBytes = 1;
// Bodies smaller than this are not worth packing.
constexpr size_t kMinGzipBytes = 1024;

absl::Status CheckAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon != absl::string_view::npos) {
    absl::string_view host = address.substr(0, colon);
    const bool bracketed = absl::ConsumePrefix(&host, "[");
    const bool closed = absl::ConsumeSuffix(&host, "]");
    const bool plain_colon = !bracketed && host.find(':') != absl::string_view::npos;
    if (!host.empty() && bracketed == closed && !plain_colon &&
        absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 0 && port <= 65535) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", address, "\" is no address: expected host:port or [IPv6]:port"));
}

// httplib would pick an encoding by looking for "br" and "gzip" anywhere in the header, whatever
// the q. It leaves a body of known length from a provider as it is.
void SetBody(const httplib::Request& request, HttpResponse response, httplib::Response* out) {
  out->set_header("Vary", "Accept, Accept-Encoding");
  for (const auto& [name, value] : response.headers) out->set_header(name, value);
  std::string body = std::move(response.body);
  if (body.size() >= kMinGzipBytes && AcceptsGzip(request.get_header_value("Accept-Encoding"))) {
    if (std::optional<std::string> packed = Gzip(body); packed.has_value()) {
      out->set_header("Content-Encoding", "gzip");
      body = *std::move(packed);
    }
  }
  if (body.empty()) return;
  const size_t size = body.size();
  out->set_content_provider(
      size, response.content_type,
      [body = std::move(body)](size_t offset, size_t length, httplib::DataSink& sink) {
        return sink.write(body.data() + offset, length);
      });
}

// httplib's side of a request that is in memory: its head to be read, its answer to be written.
class MemoryStream final : public httplib::Stream {
 public:
  explicit MemoryStream(const HttpConnection& connection) : connection_(connection) {}

  std::string TakeAnswer() { return std::move(answer_); }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override {
    const size_t copied = connection_.head().copy(bytes, size, read_);
    read_ += copied;
    return static_cast<ssize_t>(copied);
  }
  ssize_t write(const char* bytes, size_t size) override {
    answer_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& address, int& port) const override {
    address = edge::HostOf(connection_.peer());
    port = connection_.peer().port;
  }
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  const HttpConnection& connection_;
  size_t read_ = 0;
  std::string answer_;
};

security::Credentials CredentialsOf(const httplib::Request& request) {
  security::Credentials shown;
  shown.peer = request.remote_addr;
  if (request.get_header_value_count("Authorization") == 1) {
    shown.token = security::TokenOf(request.get_header_value("Authorization"), true);
  }
  if (request.ssl != nullptr) shown.certificate = VerifiedPeer(*request.ssl);
  return shown;
}

// What httplib does: reads a head, finds who handles it, writes an answer. It never listens.
class Protocol final : public httplib::Server {
 public:
  using Handler = std::function<HttpResponse(const httplib::Request&)>;

  explicit Protocol(const Handler& handler) {
    svr_sock_ = 0;  // Without one it takes itself for stopped and leaves bodies out.
    set_payload_max_length(kMaxRequestBodyBytes);
    // One header could ask for thousands of overlapping copies of a page.
    set_pre_routing_handler([](const httplib::Request& request, httplib::Response& out) {
      if (request.ranges.empty()) return HandlerResponse::Unhandled;
      out.status = 416;
      return HandlerResponse::Handled;
    });
    set_exception_handler([](const httplib::Request&, httplib::Response& out,
                             const std::exception_ptr&) { out.status = 500; });
    // A path is matched exactly, so it must not be read as a regular expression: one handler finds
    // its route.
    Get(".*", [handler](const httplib::Request& request, httplib::Response& out) {
      HttpResponse response = handler(request);
      out.status = response.status;
      SetBody(request, std::move(response), &out);
    });
  }

  std::string Answer(const HttpConnection& connection) {
    MemoryStream stream(connection);
    bool closed = true;
    process_request(stream, true, closed,
                    [&connection](httplib::Request& request) { request.ssl = connection.tls(); });
    return stream.TakeAnswer();
  }
};

const char* PhraseOf(int status) {
  switch (status) {
    case 408:
      return "Request Timeout";
    case 413:
      return "Payload Too Large";
    default:
      return "Service Unavailable";
  }
}

// Without httplib, for what the front finds by itself.
std::string Write(const HttpResponse& response) {
  std::string text = absl::StrCat("HTTP/1.1 ", response.status, " ", PhraseOf(response.status),
                                  "\r\nConnection: close\r\nContent-Type: ", response.content_type,
                                  "\r\nContent-Length: ", response.body.size(), "\r\n");
  for (const auto& [name, value] : response.headers) {
    absl::StrAppend(&text, name, ": ", value, "\r\n");
  }
  return absl::StrCat(text, "\r\n", response.body);
}

using TlsContext = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;

// Null if OpenSSL refuses.
TlsContext MakeTlsContext(const security::TlsSource* source) {
  TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context != nullptr && !ConfigureTls(source, context.get())) context = nullptr;
  return context;
}

class FrontedServer final : public HttpServer {
 public:
  explicit FrontedServer(HttpServerOptions options)
      : options_(std::move(options)),
        tls_(nullptr, SSL_CTX_free),
        protocol_([this](const httplib::Request& request) { return Serve(request); }) {}
  ~FrontedServer() override { FrontedServer::Stop(); }

  absl::Status Listen() {
    TACHO_RETURN_IF_ERROR(CheckAddress(options_.address));
    if (options_.tls != nullptr && (tls_ = MakeTlsContext(options_.tls)) == nullptr) {
      return absl::UnavailableError("OpenSSL cannot be set up");
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
    front.serve = [this](const HttpConnection& connection) { return protocol_.Answer(connection); };
    front.refuse = [this](const absl::Status& why) {
      return Write(ErrorResponse(why, ++refusals_));
    };
    TACHO_ASSIGN_OR_RETURN(auto started, HttpFront::Start(*std::move(listener), std::move(front)));
    front_ = std::move(started);
    return absl::OkStatus();
  }

  int port() const override { return front_->port(); }

  void Stop() override {
    absl::MutexLock lock(&mutex_);
    if (front_ != nullptr) front_->Stop();
  }

 private:
  HttpResponse Serve(const httplib::Request& request) const {
    for (const Route& route : options_.routes) {
      if (route.path != request.path) continue;
      return route.handler({request.get_header_value("Accept"), CredentialsOf(request)});
    }
    return ErrorResponse(
        errors::ErrorOf(errors::Condition::kNotFound, "No such page. / lists what there is."));
  }

  const HttpServerOptions options_;
  TlsContext tls_;
  Protocol protocol_;
  std::atomic<uint64_t> refusals_ = 0;  // Spreads the delays of those turned away together.
  absl::Mutex mutex_;                   // Of Stop().
  std::unique_ptr<HttpFront> front_;    // Last: its threads use the others.
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  auto server = std::make_unique<FrontedServer>(std::move(options));
  TACHO_RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace tacho::server::http
