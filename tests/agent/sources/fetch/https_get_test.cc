#include "agent/sources/fetch/https_get.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/certificates.h"

namespace tacho::agent {
namespace {

using ::testing::HasSubstr;

// Answers the first bytes of one connection, whatever they are, and waits for its end.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer)
      : listener_(socket(AF_INET, SOCK_STREAM, 0)), answer_(std::move(answer)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = {.host = "127.0.0.1", .port = absl::StrCat(ntohs(address.sin_port)), .path = "/"};
    thread_ = std::thread([this] { Serve(); });
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;
  ~OneAnswer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  const HttpUrl& url() const { return url_; }

 private:
  void Serve() const {
    const int fd = accept(listener_, nullptr, nullptr);
    if (fd < 0) return;
    char buffer[4096];
    if (recv(fd, buffer, sizeof(buffer), 0) > 0) {
      send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      while (recv(fd, buffer, sizeof(buffer), 0) > 0) {
      }
    }
    close(fd);
  }

  const int listener_;
  const std::string answer_;
  HttpUrl url_;
  std::thread thread_;
};

// A TLS record with the alert close_notify.
constexpr char kCloseNotify[] = {0x15, 0x03, 0x03, 0, 2, 1, 0};

TEST(HttpsGetTest, AServerThatEndsTheHandshakeIsUnavailable) {
  const OneAnswer server(std::string(kCloseNotify, sizeof(kCloseNotify)));
  const std::string authority = TestCertificate::Authority("one").pem();
  // An authority may be listed twice.
  const auto response =
      HttpsGet(server.url(), {.path = "ca.crt", .pem = absl::StrCat(authority, authority)}, {});
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable) << response.status();
  EXPECT_THAT(std::string(response.status().message()),
              HasSubstr(absl::StrCat("no TLS with ", server.url().authority())));
}

}  // namespace
}  // namespace tacho::agent
