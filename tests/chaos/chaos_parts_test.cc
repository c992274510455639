// The campaign's own parts: a test that cannot fail proves nothing.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/faulty_proxy.h"
#include "tests/chaos/process.h"
#include "tests/chaos/record.h"

namespace tacho::chaos {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Record Known() {
  Record record;
  record.samples[{"m", 0}] = {{.time_ns = 1, .step = 1, .bits = 7}, {.time_ns = 2, .step = 2}};
  record.events = {{.message = "a"}, {.message = "b"}};
  record.attributes[0]["k"] = "1";
  return record;
}

TEST(RecordTest, SameIsSame) {
  EXPECT_THAT(Aliens(Known(), Known()), IsEmpty());
  EXPECT_THAT(Missing(Known(), {Known()}), IsEmpty());
  EXPECT_THAT(AttributeDifferences(Known(), Known()), IsEmpty());
  EXPECT_EQ(CountShared(Known(), Known()), 2u);
}

TEST(RecordTest, WhatIsThereTwiceIsAnAlien) {
  Record found = Known();
  auto& samples = found.samples[{"m", 0}];
  samples.insert(samples.begin(), samples.front());
  EXPECT_THAT(Aliens(Known(), found), HasSubstr("time 1 "));
  found = Known();
  found.events.push_back(found.events.back());
  EXPECT_THAT(Aliens(Known(), found), HasSubstr("event \"b\""));
}

TEST(RecordTest, AnyOtherBitTimeOrStepIsBothAlienAndMissing) {
  for (int part = 0; part < 4; ++part) {
    Record found = Known();
    Sample& sample = found.samples[{"m", 0}].front();
    if (part == 0) ++sample.bits;
    if (part == 1) --sample.time_ns;
    if (part == 2) ++sample.step;
    if (part == 3) ++sample.attempt;
    EXPECT_THAT(Aliens(Known(), found), HasSubstr("m{task=0}")) << part;
    EXPECT_THAT(Missing(Known(), {found}), HasSubstr("m{task=0}")) << part;
  }
}

TEST(RecordTest, WhatOneOfTwoCollectorsHasIsNotMissing) {
  Record first = Known();
  Record second;
  second.samples[{"m", 0}] = {first.samples[{"m", 0}].back()};
  first.samples[{"m", 0}].pop_back();
  EXPECT_THAT(Missing(Known(), {first, second}), IsEmpty());
  EXPECT_THAT(Missing(Known(), {first}), HasSubstr("time 2 "));
  first.events.clear();
  EXPECT_THAT(Missing(Known(), {first, second}), HasSubstr("event \"a\""));
}

TEST(RecordTest, OldValueOfAnAttributeDiffers) {
  Record found = Known();
  found.attributes[0]["k"] = "0";
  EXPECT_THAT(AttributeDifferences(Known(), found), HasSubstr("k of attempt 0 is 0"));
}

// A listener, a client through the proxy, and the accepted end of it.
class FaultyProxyTest : public ::testing::Test {
 protected:
  FaultyProxyTest() {
    const int port = FreePort();
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Loopback(port);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    proxy_.SetTarget(port);
    client_ = Connect();
    server_ = accept(listener_, nullptr, nullptr);
    SetPatience(server_);
  }
  ~FaultyProxyTest() override {
    for (const int fd : {listener_, client_, server_}) close(fd);
  }

  static sockaddr_in Loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static void SetPatience(int fd) {
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  int Connect() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Loopback(proxy_.port());
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    SetPatience(fd);
    return fd;
  }
  // Until the connection ends, or there are `most` bytes.
  static std::string Read(int fd, size_t most) {
    std::string all;
    char byte = 0;
    while (all.size() < most && recv(fd, &byte, 1, 0) == 1) all.push_back(byte);
    return all;
  }

  FaultyProxy proxy_;
  int listener_ = -1;
  int client_ = -1;
  int server_ = -1;
};

TEST_F(FaultyProxyTest, PassesBytesOnBothWays) {
  ASSERT_EQ(send(client_, "ping", 4, 0), 4);
  EXPECT_EQ(Read(server_, 4), "ping");
  ASSERT_EQ(send(server_, "pong", 4, 0), 4);
  EXPECT_EQ(Read(client_, 4), "pong");
}

TEST_F(FaultyProxyTest, CutsAtTheByte) {
  proxy_.Inject({.kind = Fault::Kind::kCut, .from = Side::kClient, .after_bytes = 6});
  ASSERT_EQ(send(client_, "ping", 4, 0), 4);
  EXPECT_EQ(Read(server_, 4), "ping");
  ASSERT_EQ(send(client_, "pong", 4, 0), 4);
  EXPECT_EQ(Read(server_, 4), "po");
  EXPECT_EQ(Read(client_, 1), "");
  EXPECT_EQ(proxy_.stats().cuts, 1u);
}

TEST_F(FaultyProxyTest, LingeringBytesArriveAfterTheClientWasCutOff) {
  proxy_.Inject({.kind = Fault::Kind::kCutLingering,
                 .from = Side::kClient,
                 .after_bytes = 2,
                 .duration = absl::Milliseconds(100)});
  ASSERT_EQ(send(client_, "pingpong", 8, 0), 8);
  EXPECT_EQ(Read(client_, 1), "");
  EXPECT_EQ(Read(server_, 100), "pingpong");
}

TEST_F(FaultyProxyTest, TrickleAndHealPassEverything) {
  proxy_.Inject({.kind = Fault::Kind::kTrickle, .duration = absl::Seconds(60), .chunk = 3});
  const std::string text(300, 'x');
  ASSERT_EQ(send(client_, text.data(), text.size(), 0), 300);
  EXPECT_EQ(Read(server_, 300), text);
  proxy_.Inject({.kind = Fault::Kind::kStall, .duration = absl::Seconds(60)});
  ASSERT_EQ(send(client_, "held", 4, 0), 4);
  proxy_.Heal();
  EXPECT_EQ(Read(server_, 4), "held");
}

TEST_F(FaultyProxyTest, RefusesForATime) {
  proxy_.Inject({.kind = Fault::Kind::kRefuse, .duration = absl::Seconds(60)});
  EXPECT_EQ(Read(server_, 1), "");
  const int second = Connect();
  EXPECT_EQ(Read(second, 1), "");
  close(second);
}

}  // namespace
}  // namespace tacho::chaos
