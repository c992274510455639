#include "server/http/http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/error_table.h"
#include "server/http/accept.h"
#include "server/http/error_response.h"
#include "server/http/gzip.h"
#include "server/http/http_tls.h"
#include "server/security/authorization_header.h"

namespace tacho::server {
namespace {

// Requests at work at once; more wait in the kernel. A scraper, a probe or two, a person.
constexpr size_t kThreads = 4;
// Between two reads, and for a write, of a client.
constexpr time_t kReadTimeoutSeconds = 5;
constexpr time_t kWriteTimeoutSeconds = 30;
// httplib accepts no 0 here. Nothing that is served reads a body.
constexpr size_t kMaxRequestBodyBytes = 1;
// Bodies smaller than this are not worth packing.
constexpr size_t kMinGzipBytes = 1024;

struct HostPort {
  std::string host;
  int port = 0;
};

absl::StatusOr<HostPort> SplitAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  HostPort parts;
  if (colon != absl::string_view::npos) {
    absl::string_view host = address.substr(0, colon);
    const bool bracketed = absl::ConsumePrefix(&host, "[");
    const bool closed = absl::ConsumeSuffix(&host, "]");
    const bool plain_colon = !bracketed && host.find(':') != absl::string_view::npos;
    parts.host = std::string(host);
    if (!host.empty() && bracketed == closed && !plain_colon &&
        absl::SimpleAtoi(address.substr(colon + 1), &parts.port) && parts.port >= 0 &&
        parts.port <= 65535) {
      return parts;
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

// SSL_CTX is configured by a TlsSource, per connection.
std::unique_ptr<httplib::Server> MakeServer(const TlsSource* tls) {
  if (tls == nullptr) return std::make_unique<httplib::Server>();
  return std::make_unique<httplib::SSLServer>(
      [tls](SSL_CTX& context) { return ConfigureTls(tls, &context); });
}

Credentials CredentialsOf(const httplib::Request& request) {
  Credentials shown;
  shown.peer = request.remote_addr;
  if (request.get_header_value_count("Authorization") == 1) {
    shown.token = TokenOf(request.get_header_value("Authorization"), true);
  }
  if (request.ssl != nullptr) shown.certificate = VerifiedPeer(*request.ssl);
  return shown;
}

class HttplibServer final : public HttpServer {
 public:
  explicit HttplibServer(HttpServerOptions options)
      : routes_(std::move(options.routes)), server_(MakeServer(options.tls)) {
    Configure();
  }
  ~HttplibServer() override { HttplibServer::Stop(); }

  absl::Status Listen(const std::string& address) {
    absl::StatusOr<HostPort> parts = SplitAddress(address);
    if (!parts.ok()) return parts.status();
    if (!server_->is_valid()) return absl::UnavailableError("OpenSSL cannot be set up");
    port_ = parts->port == 0 ? server_->bind_to_any_port(parts->host)
            : server_->bind_to_port(parts->host, parts->port) ? parts->port
                                                              : -1;
    if (port_ <= 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", address, ": is another process using it?"));
    }
    absl::MutexLock lock(&mutex_);
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    // Before it runs, stop() would do nothing and Stop() wait forever.
    while (!server_->is_running()) absl::SleepFor(absl::Milliseconds(1));
    return absl::OkStatus();
  }

  int port() const override { return port_; }

  void Stop() override {
    absl::MutexLock lock(&mutex_);
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }

 private:
  void Configure() {
    server_->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_->set_keep_alive_max_count(1);
    server_->set_read_timeout(kReadTimeoutSeconds);
    server_->set_write_timeout(kWriteTimeoutSeconds);
    server_->set_payload_max_length(kMaxRequestBodyBytes);
    // httplib's own would set SO_REUSEPORT, with which a second collector shares the port
    // unnoticed.
    server_->set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    // One header could ask for thousands of overlapping copies of a page.
    server_->set_pre_routing_handler([](const httplib::Request& request, httplib::Response& out) {
      if (request.ranges.empty()) return httplib::Server::HandlerResponse::Unhandled;
      out.status = 416;
      return httplib::Server::HandlerResponse::Handled;
    });
    server_->set_exception_handler([](const httplib::Request&, httplib::Response& out,
                                      const std::exception_ptr&) { out.status = 500; });
    // A path is matched exactly, so it must not be read as a regular expression: one handler finds
    // its route.
    server_->Get(".*", [this](const httplib::Request& request, httplib::Response& out) {
      Serve(request, &out);
    });
  }

  void Serve(const httplib::Request& request, httplib::Response* out) const {
    for (const Route& route : routes_) {
      if (route.path != request.path) continue;
      HttpResponse response =
          route.handler({request.get_header_value("Accept"), CredentialsOf(request)});
      out->status = response.status;
      return SetBody(request, std::move(response), out);
    }
    HttpResponse missing =
        ErrorResponse(ErrorOf(Condition::kNotFound, "No such page. / lists what there is."));
    out->status = missing.status;
    SetBody(request, std::move(missing), out);
  }

  const std::vector<Route> routes_;
  const std::unique_ptr<httplib::Server> server_;
  int port_ = -1;
  absl::Mutex mutex_;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  const std::string address = options.address;
  auto server = std::make_unique<HttplibServer>(std::move(options));
  if (absl::Status status = server->Listen(address); !status.ok()) return status;
  return server;
}

}  // namespace tacho::server
