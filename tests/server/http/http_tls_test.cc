// The same port with TLS, where bytes can wait in OpenSSL while the socket has none.
#include <openssl/ssl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/http/later_server.h"
#include "tests/support/certificates.h"

namespace tacho::server::http {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class TlsClient {
 public:
  explicit TlsClient(int port)
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        socket_(port),
        tls_(SSL_new(context_.get()), SSL_free) {
    SSL_set_fd(tls_.get(), socket_.fd());
    EXPECT_EQ(SSL_connect(tls_.get()), 1);
  }
  void Send(const std::string& bytes) const {
    EXPECT_EQ(SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())),
              static_cast<int>(bytes.size()));
  }
  // Up to and with these bytes; less if the other side closes.
  std::string ReadUntil(const std::string& end) const {
    std::string bytes;
    char byte = 0;
    while (!EndsIn(bytes, end) && SSL_read(tls_.get(), &byte, 1) == 1) bytes.push_back(byte);
    return bytes;
  }
  // So many bytes.
  void Skip(size_t count) const {
    std::string bytes(64 << 10, '\0');
    while (count > 0) {
      const int got =
          SSL_read(tls_.get(), bytes.data(), static_cast<int>(std::min(count, bytes.size())));
      ASSERT_GT(got, 0);
      count -= static_cast<size_t>(got);
    }
  }

 private:
  static bool EndsIn(const std::string& bytes, const std::string& end) {
    return bytes.size() >= end.size() && bytes.substr(bytes.size() - end.size()) == end;
  }

  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  const RawClient socket_;
  const std::unique_ptr<SSL, void (*)(SSL*)> tls_;
};

class HttpTlsTest : public LaterServerTest {
 protected:
  HttpTlsTest() {
    const auto authority = TestCertificate::Authority("ca");
    const auto server = TestCertificate::Loopback(authority, "server");
    config::v1::Collector config;
    config.mutable_listen()->mutable_tls()->set_certificate(
        files_.Write("crt", server.pem(), 0644));
    config.mutable_listen()->mutable_tls()->set_key(files_.Write("key", server.key_pem()));
    auto source = security::TlsSource::Create(config);
    EXPECT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
  }
  ~HttpTlsTest() override { server_.reset(); }  // Before its certificate.

  TestFiles files_;
  std::unique_ptr<security::TlsSource> source_;
};

TEST_F(HttpTlsTest, RequestsFollowEachOtherAlsoInOneRecord) {
  Start({}, source_.get());
  const TlsClient client(port());
  client.Send(Post("/echo", "one.") + Post("/echo", "two.") + Get("/healthz"));
  EXPECT_THAT(client.ReadUntil("one."), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(client.ReadUntil("two."), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(client.ReadUntil("\r\n\r\nalive"), StartsWith("HTTP/1.1 200 "));
  // A record has up to 16 KiB: this one is read from the socket in one go, and used in many.
  std::string many;
  for (int i = 0; i < 15; ++i) many += Post("/echo", std::string(900, 'x') + "end.");
  client.Send(many);
  for (int i = 0; i < 15; ++i) EXPECT_THAT(client.ReadUntil("end."), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpTlsTest, ABodyMayComeInPieces) {
  Start({}, source_.get());
  const TlsClient client(port());
  for (const char byte : Post("/echo", "all of it.")) client.Send(std::string(1, byte));
  EXPECT_THAT(client.ReadUntil("all of it."), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpTlsTest, AStreamStopsAtItsClientAndGoesOn) {
  Start({}, source_.get());
  const TlsClient client(port());
  client.Send(Get("/later"));
  const ResponderPtr responder = Await();
  responder->Begin({.body = "first."});
  EXPECT_THAT(client.ReadUntil("first."), HasSubstr("Transfer-Encoding: chunked"));
  size_t pieces = 0;
  while (responder->unsent() <= Responder::kHighWater && pieces < 10'000) {
    responder->Write(std::string(64 << 10, 'x'));
    ++pieces;
    absl::SleepFor(absl::Microseconds(200));
  }
  ASSERT_GT(responder->unsent(), Responder::kHighWater);
  absl::Notification room;
  responder->OnRoom([&room] { room.Notify(); });
  EXPECT_FALSE(room.HasBeenNotified());
  const std::string size_line = "10000\r\n";
  EXPECT_EQ(client.ReadUntil(size_line), "\r\n" + size_line);
  client.Skip(pieces * (size_line.size() + (64 << 10) + 2) - size_line.size());
  EXPECT_TRUE(WaitFor(room, kPatience));
  responder->Finish();
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "0\r\n\r\n");
  client.Send(Get("/healthz"));
  EXPECT_THAT(client.ReadUntil("\r\n\r\nalive"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpTlsTest, WhoHangsUpIsToldOf) {
  Start({}, source_.get());
  auto client = std::make_unique<TlsClient>(port());
  client->Send(Get("/later"));
  const ResponderPtr responder = Await();
  absl::Notification gone;
  responder->OnGone([&gone] { gone.Notify(); });
  client.reset();
  EXPECT_TRUE(WaitFor(gone, kPatience));
}

}  // namespace
}  // namespace tacho::server::http
