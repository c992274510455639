// What arrives on the sockets is stored, and what is left out is counted.
#include "server/interop/statsd_door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/interop/intake_fixture.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class StatsdDoorTest : public IntakeTest {
 protected:
  void SetUp() override {
    IntakeTest::SetUp();
    auto door = StatsdDoor::Open(Options("127.0.0.1:0"));
    ASSERT_TRUE(door.ok()) << door.status();
    door_ = *std::move(door);
  }
  // The store calls the door, so it has to be done with all writes before the door goes. It answers
  // one after the other.
  void TearDown() override {
    door_->Stop();
    ForeignWrite last;
    Add(&last, "last", 1);
    Write(last);
    IntakeTest::TearDown();
  }
  StatsdDoorOptions Options(const std::string& address) {
    StatsdDoorOptions options;
    options.intake = intake_.get();
    options.address = address;
    options.interval = absl::Hours(1);  // The tests flush.
    options.registry = &registry_;
    options.now = now_;
    return options;
  }
  int Connected(int type) {
    const int fd = socket(AF_INET, type, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(door_->port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }
  static void Send(int fd, const std::string& text) {
    EXPECT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  double Counted(const std::string& name, const std::string& reason = "") {
    for (const auto& family : registry_.Collect()) {
      if (family.name != name) continue;
      for (const auto& metric : family.metric) {
        if (reason.empty() || metric.label.at(0).value == reason) {
          return metric.counter.value + metric.gauge.value;
        }
      }
    }
    return -1;
  }
  void AwaitCounted(const std::string& name, double value, const std::string& reason = "") {
    for (int i = 0; i < 2000 && Counted(name, reason) < value; ++i) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_EQ(Counted(name, reason), value) << name << reason;
  }

  std::unique_ptr<StatsdDoor> door_;
};

TEST_F(StatsdDoorTest, DatagramsAndConnectionsAreStored) {
  const int datagrams = Connected(SOCK_DGRAM);
  const int lines = Connected(SOCK_STREAM);
  Send(datagrams, "a:1|c|#job:vision\na:2|c|#job:vision");
  Send(lines, "a:4|c|#job:vision\nb:7|g|#job:vi");
  AwaitCounted("tacho_interop_statsd_values_total", 3);
  Send(lines, "sion");
  close(lines);
  close(datagrams);
  AwaitCounted("tacho_interop_statsd_values_total", 4);
  door_->Flush();
  AwaitCounted("tacho_interop_samples_total", 2);  // The store answers on a thread of its own.
  EXPECT_THAT(Stored("a"), ElementsAre(Pair(0, 7)));
  EXPECT_THAT(Stored("b"), ElementsAre(Pair(0, 7)));
  EXPECT_EQ(Counted("tacho_interop_statsd_series"), 2);
}

TEST_F(StatsdDoorTest, WhatIsLeftOutIsCounted) {
  door_->Take("_e{1,1}:a|b\n_sc|a|0\nbad\na:1|c|#job:vision\na:1|g|#job:vision");
  for (const char* reason : {"event", "service_check", "unreadable", "other_type"}) {
    EXPECT_EQ(Counted("tacho_interop_statsd_dropped_total", reason), 1) << reason;
  }
  door_->Flush();
  AwaitCounted("tacho_interop_samples_total", 1);
  EXPECT_THAT(Stored("a"), ElementsAre(Pair(0, 1)));
}

TEST_F(StatsdDoorTest, ALineWithoutAnEndClosesItsConnection) {
  const int lines = Connected(SOCK_STREAM);
  const std::string part(16'384, 'x');
  for (int i = 0; i < 20; ++i) send(lines, part.data(), part.size(), MSG_NOSIGNAL);
  AwaitCounted("tacho_interop_statsd_dropped_total", 1, "connection");
  close(lines);
  EXPECT_EQ(Counted("tacho_interop_statsd_dropped_total", "unreadable"), 0);
}

TEST_F(StatsdDoorTest, MoreConnectionsThanTheBoundAreClosed) {
  std::vector<int> open;
  for (size_t i = 0; i < StatsdDoor::kMaxConnections; ++i) open.push_back(Connected(SOCK_STREAM));
  const int more = Connected(SOCK_STREAM);
  char byte = 0;
  EXPECT_EQ(recv(more, &byte, 1, 0), 0);
  EXPECT_EQ(Counted("tacho_interop_statsd_dropped_total", "connection"), 1);
  close(more);
  for (const int fd : open) close(fd);
}

TEST_F(StatsdDoorTest, WhileTheCollectorDrainsNothingIsLost) {
  door_->Take("a:1|c|#job:vision");
  admission_.StartDraining();
  door_->Flush();
  EXPECT_THAT(Stored("a"), IsEmpty());
  door_->Take("a:2|c|#job:vision");
  door_->Stop();
  AwaitCounted("tacho_interop_samples_total", 1);
  EXPECT_THAT(Stored("a"), ElementsAre(Pair(0, 3)));
}

TEST_F(StatsdDoorTest, ATakenAddressIsRefused) {
  const auto second = StatsdDoor::Open(Options(absl::StrCat("127.0.0.1:", door_->port())));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("interop.statsd.listen"));
}

}  // namespace
}  // namespace tacho::server::interop
