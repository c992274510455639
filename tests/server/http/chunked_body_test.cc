// Bodies in chunks: alone, and as a client of the server sends them.
#include "server/http/chunked_body.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/http/later_server.h"

namespace tacho::server::http {
namespace {

using State = ChunkedBody::State;
using testing::AllOf;
using testing::EndsWith;
using testing::StartsWith;

constexpr char kHello[] = "5;a=b\r\nhello\r\n00A\r\n 0123 \r\n 9\r\n0\r\nTrailer: x\r\n\r\n";
constexpr char kHelloBody[] = "hello 0123 \r\n 9";

// What is read of `bytes`, which follow a head and come in pieces that end at `cut`.
State Read(const std::string& bytes, size_t cut, std::string* body, std::string* rest,
           size_t max_bytes = 100) {
  ChunkedBody chunks(max_bytes);
  std::string in = "head" + bytes.substr(0, cut);
  State state = chunks.Read(4, &in);
  in += bytes.substr(cut);
  state = chunks.Read(4, &in);
  EXPECT_TRUE(absl::StartsWith(in, "head"));
  *body = in.substr(4, chunks.bytes());
  *rest = in.substr(4 + chunks.bytes());
  return state;
}

TEST(ChunkedBodyTest, TheSameIsReadWhereverTheBytesAreCut) {
  const std::string bytes = absl::StrCat(kHello, "GET /");
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    std::string body, rest;
    EXPECT_EQ(Read(bytes, cut, &body, &rest), State::kDone) << cut;
    EXPECT_EQ(body, kHelloBody) << cut;
    EXPECT_EQ(rest, "GET /") << cut;
  }
}

TEST(ChunkedBodyTest, ABodyThatIsNotWholeNeedsMore) {
  const std::string bytes = kHello;
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::string body, rest;
    EXPECT_EQ(Read(bytes.substr(0, size), size / 2, &body, &rest), State::kMore) << size;
  }
}

TEST(ChunkedBodyTest, DamagedBytesAreRefused) {
  const std::string long_line(ChunkedBody::kMaxLineBytes, '0');
  const std::string trailer = absl::StrCat("A: ", std::string(100, 'x'), "\r\n");
  std::string trailers = "0\r\n";
  for (size_t i = 0; i < 90; ++i) trailers += trailer;
  for (const std::string& bytes :
       {std::string("\r\n"), std::string("x\r\n"), std::string("-1\r\n"), std::string("+1\r\n"),
        std::string("0x1\r\na\r\n"), std::string(" 1\r\na\r\n"), std::string("1 \r\na\r\n"),
        std::string("1\na\n"), std::string("1;\n0\r\n\r\n"), std::string("1\r\nab\r\n"),
        std::string("1\r\na\n"), std::string("1\r\na\r1\r\n"), std::string("000000001\r\na\r\n"),
        long_line, trailers}) {
    for (const size_t cut : {size_t{0}, bytes.size() / 2}) {
      std::string body, rest;
      const State state = Read(absl::StrCat(bytes, "0\r\n\r\n"), cut, &body, &rest);
      EXPECT_EQ(state, State::kDamaged) << bytes.substr(0, 40);
    }
  }
}

TEST(ChunkedBodyTest, AtMostTheAllowedBytesAreRead) {
  std::string body, rest;
  EXPECT_EQ(Read("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 0, &body, &rest, 5), State::kDone);
  EXPECT_EQ(body, "abcde");
  EXPECT_EQ(Read("3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n", 0, &body, &rest, 5), State::kTooLarge);
  EXPECT_EQ(Read("ffffffff\r\n", 0, &body, &rest, 5), State::kTooLarge);
}

class ChunkedServerTest : public LaterServerTest {
 protected:
  static std::string Chunked(const std::string& path, const std::string& body,
                             const std::string& more = "") {
    return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\n", more,
                        "Transfer-Encoding: chunked\r\n\r\n", body);
  }
};

TEST_F(ChunkedServerTest, ABodyInChunksIsAnsweredAndSoIsTheNextRequest) {
  Start();
  const RawClient client(port(), Chunked("/chunks", kHello) + Get("/healthz"));
  EXPECT_THAT(client.ReadAnswer(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith(kHelloBody)));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("alive"));
  client.Send(Chunked("/chunks", "1\r\na\r"));
  client.Send("\n0\r\n\r\n");
  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\na"));
}

TEST_F(ChunkedServerTest, AClientThatAsksIsToldToContinue) {
  Start();
  const RawClient client(port(), Chunked("/chunks", "", "Expect: 100-continue\r\n"));
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 100"));
  client.Send(kHello);
  EXPECT_THAT(client.ReadAnswer(), EndsWith(kHelloBody));
}

// Bytes after damaged chunks must not become a request.
TEST_F(ChunkedServerTest, ARefusedBodyEndsTheConnection) {
  Start();
  const RawClient damaged(port(), Chunked("/chunks", "1\r\nab\r\n") + Get("/healthz"));
  EXPECT_THAT(damaged.ReadAnswer(), StartsWith("HTTP/1.1 400 "));
  shutdown(damaged.fd(), SHUT_WR);
  EXPECT_EQ(damaged.Read(), "");
  const RawClient large(port(),
                        Chunked("/chunks", absl::StrCat("3e9\r\n", std::string(1001, 'a'))));
  EXPECT_THAT(large.ReadAnswer(), StartsWith("HTTP/1.1 413 "));
  shutdown(large.fd(), SHUT_WR);
  EXPECT_EQ(large.Read(), "");
}

TEST_F(ChunkedServerTest, NothingButChunksIsTaken) {
  Start();
  const auto answer = [&](const std::string& head) {
    return RawClient(port(), absl::StrCat("POST /chunks ", head, "\r\n\r\n0\r\n\r\n")).ReadAnswer();
  };
  EXPECT_THAT(answer("HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked"),
              StartsWith("HTTP/1.1 411 "));
  EXPECT_THAT(answer("HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                     "Transfer-Encoding: chunked"),
              StartsWith("HTTP/1.1 411 "));
  EXPECT_THAT(answer("HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked"),
              StartsWith("HTTP/1.1 411 "));
  EXPECT_THAT(answer("HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5"),
              StartsWith("HTTP/1.1 400 "));
}

}  // namespace
}  // namespace tacho::server::http
