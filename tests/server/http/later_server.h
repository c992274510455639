// A server of a few routes, one of which keeps its responders for the test.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "proto/base/timed_wait.h"
#include "server/http/http_server.h"
#include "tests/server/http/raw_client.h"

namespace tacho::server::http {

inline constexpr absl::Duration kPatience = absl::Seconds(30);
inline constexpr size_t kMaxBody = 1000;

inline std::string Post(const std::string& path, const std::string& body,
                        const std::string& more = "") {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\n", more,
                      "Content-Length: ", body.size(), "\r\n\r\n", body);
}

inline std::string Get(const std::string& path, const std::string& more = "") {
  return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n", more, "\r\n");
}

class LaterServerTest : public testing::Test {
 protected:
  void Start(const HttpLimits& limits = {}, const security::TlsSource* tls = nullptr) {
    HttpServerOptions options;
    options.tls = tls;
    options.address = "127.0.0.1:0";
    options.limits = limits;
    options.registry = &registry_;
    Route echo{"/echo"};
    echo.handler = [](const HttpRequest& request) { return HttpResponse{.body = request.body}; };
    echo.methods = Methods::kGetAndPost;
    echo.max_body = kMaxBody;
    Route chunks = echo;
    chunks.path = "/chunks";
    chunks.takes_chunks = true;
    Route below{"/below/"};
    below.prefix = true;
    below.handler = [](const HttpRequest& request) { return HttpResponse{.body = request.path}; };
    Route deeper = below;
    deeper.path = "/below/deeper/";
    deeper.handler = [](const HttpRequest&) { return HttpResponse{.body = "deeper"}; };
    Route later{"/later"};
    later.later = [this](HttpRequest request, ResponderPtr responder) {
      absl::MutexLock lock(&mutex_);
      request_ = std::move(request);
      waiting_.push_back(std::move(responder));
    };
    later.methods = Methods::kGetAndPost;
    later.max_body = kMaxBody;
    options.routes = {
        echo,  chunks,
        below, deeper,
        later, {"/healthz", [](const HttpRequest&) {
                                                     return HttpResponse{.body = "alive"}; }}};
    auto server = HttpServer::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }
  // The responder of the oldest request that waits.
  ResponderPtr Await() {
    absl::MutexLock lock(&mutex_);
    const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !waiting_.empty(); };
    if (!AwaitFor(&mutex_, absl::Condition(&any), kPatience)) return nullptr;
    ResponderPtr first = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    return first;
  }
  double Closed(const std::string& reason) const {
    return Counter("tacho_http_connections_closed_total", reason);
  }
  // The lines of a family that have this value of a label.
  double Counter(const std::string& name, const std::string& label) const {
    double sum = 0;
    for (const auto& family : registry_.Collect()) {
      if (family.name != name) continue;
      for (const auto& metric : family.metric) {
        for (const auto& one : metric.label) {
          if (one.value == label) sum += metric.counter.value;
        }
      }
    }
    return sum;
  }
  std::string Health() const { return RawClient(port(), Get("/healthz")).ReadAnswer(); }

  prometheus::Registry registry_;
  absl::Mutex mutex_;
  HttpRequest request_ ABSL_GUARDED_BY(mutex_);  // The newest.
  std::vector<ResponderPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> server_;
};

}  // namespace tacho::server::http
