#include "server/edge/connection_table.h"

#include <sys/ioctl.h>

#include "gmock/gmock.h"
#include "tests/server/edge/connection_fixture.h"

namespace tacho::server::edge {
namespace {

using testing::ElementsAre;

TEST_F(ConnectionTableTest, AnAddressHasItsShareAndClosedOnesMakeRoom) {
  std::vector<Pair> pairs(4);
  EXPECT_TRUE(Admit(pairs[0]));
  EXPECT_TRUE(Admit(pairs[1]));
  EXPECT_TRUE(Admit(pairs[2]));
  EXPECT_FALSE(Admit(pairs[3]));
  EXPECT_EQ(Counter("tacho_connections_refused_total", "address"), 1);
  pairs[1].CloseServer();
  now_ += absl::Seconds(1);
  EXPECT_TRUE(Admit(pairs[3])) << "found without a sweep";
  EXPECT_EQ(table_.size(), 3u);
}

TEST_F(ConnectionTableTest, AllTogetherHaveTheirLimit) {
  auto limits = ConnectionTable::Limits{.max_connections = 2, .max_per_address = 9};
  table_.SetLimits(limits);
  std::vector<Pair> pairs(3);
  EXPECT_TRUE(Admit(pairs[0]));
  EXPECT_TRUE(Admit(pairs[1]));
  EXPECT_FALSE(Admit(pairs[2]));
  EXPECT_EQ(Counter("tacho_connections_refused_total", "total"), 1);
  memory_short_ = true;
  EXPECT_FALSE(Admit(pairs[2]));
  EXPECT_EQ(Counter("tacho_connections_refused_total", "memory"), 1);
}

TEST_F(ConnectionTableTest, ReadersOfAnAddressLeavePlacesForItsWriters) {
  table_.SetLimits({.max_connections = 100, .max_per_address = 4});
  std::vector<Pair> readers(20);
  int kept = 0;
  for (const Pair& reader : readers) {
    EXPECT_TRUE(Admit(reader)) << "nobody knows yet what it is for";
    table_.CountStart(reader.grpc_name(), kReader, now_);
    if (!reader.IsShutDown()) ++kept;
  }
  EXPECT_EQ(kept, 3);
  EXPECT_EQ(Counter("tacho_connections_refused_total", "address"), 17);
  Pair writer;
  EXPECT_TRUE(Admit(writer));
  table_.CountStart(writer.grpc_name(), kWriter, now_);
  table_.CountStart(writer.grpc_name(), kReader, now_);
  EXPECT_FALSE(writer.IsShutDown()) << "who writes may ask as well";
  EXPECT_EQ(Counter("tacho_connections_refused_total", "penalty"), 0) << "that was no flood";

  readers[0].CloseServer();
  Pass(absl::Seconds(3));
  Pair next;
  EXPECT_TRUE(Admit(next));
  table_.CountStart(next.grpc_name(), kReader, now_);
  EXPECT_FALSE(next.IsShutDown()) << "the place is free again";
}

TEST_F(ConnectionTableTest, ReadersOfAllAddressesLeavePlacesForWriters) {
  table_.SetLimits({.max_connections = 4, .max_per_address = 100});
  std::vector<Pair> readers(4);
  for (const Pair& reader : readers) {
    ASSERT_TRUE(Admit(reader));
    table_.CountStart(reader.grpc_name(), kReader, now_);
  }
  EXPECT_FALSE(readers[2].IsShutDown());
  EXPECT_TRUE(readers[3].IsShutDown());
  Pair writer;
  EXPECT_TRUE(Admit(writer));
  table_.CountStart(readers[0].grpc_name(), kWriter, now_);
  Pair reader;
  EXPECT_FALSE(Admit(reader)) << "full";
  table_.CountStart(writer.grpc_name(), kReader, now_);
  EXPECT_FALSE(writer.IsShutDown()) << "a reader became a writer";
}

TEST_F(ConnectionTableTest, AConnectionWithoutACallIsShutDown) {
  Pair silent;
  Pair busy;
  ASSERT_TRUE(Admit(silent));
  ASSERT_TRUE(Admit(busy));
  table_.CountStart(busy.grpc_name(), kWriter, now_);
  Pass(absl::Seconds(21));
  EXPECT_TRUE(silent.IsShutDown());
  EXPECT_FALSE(busy.IsShutDown());
  EXPECT_THAT(logged_,
              ElementsAre("connection of " + ToString(silent.peer()) + " shut down: silent"));
  Pass(absl::Seconds(3));
  EXPECT_EQ(Counter("tacho_connections_closed_total", "silent"), 1);
}

TEST_F(ConnectionTableTest, TooManyCallsShutAConnectionDownAtOnce) {
  Pair pair;
  ASSERT_TRUE(Admit(pair));
  for (int i = 0; i < 10; ++i) table_.CountStart(pair.grpc_name(), kWriter, now_);
  EXPECT_FALSE(pair.IsShutDown());
  table_.CountStart(pair.grpc_name(), kWriter, now_);
  EXPECT_TRUE(pair.IsShutDown());
  // For a while its address comes back one by one.
  table_.SetLimits({.max_connections = 100, .max_per_address = 100});
  std::vector<Pair> again(8);
  int admitted = 0;
  for (const Pair& each : again) admitted += Admit(each) ? 1 : 0;
  EXPECT_EQ(admitted, 5);
  EXPECT_EQ(Counter("tacho_connections_refused_total", "penalty"), 3);
  Pass(absl::Seconds(11));
  EXPECT_TRUE(Admit(again[7]));
}

TEST_F(ConnectionTableTest, CallsThatAreAnsweredAreNoneTooMany) {
  Pair pair;
  ASSERT_TRUE(Admit(pair));
  const auto use = table_.Find(pair.grpc_name());
  ASSERT_NE(use, nullptr);
  for (int i = 0; i < 100; ++i) {
    table_.CountStart(pair.grpc_name(), kWriter, now_);
    table_.CountAnswer(use.get());
  }
  EXPECT_FALSE(pair.IsShutDown());
  for (int i = 0; i < 11; ++i) table_.CountStart(pair.grpc_name(), kWriter, now_);
  EXPECT_TRUE(pair.IsShutDown());
}

TEST_F(ConnectionTableTest, BytesThatAreNoMessagesAreAFlood) {
  Pair pair;
  ASSERT_TRUE(Admit(pair));
  table_.CountStart(pair.grpc_name(), kWriter, now_);
  const auto use = table_.Find(pair.grpc_name());
  ASSERT_NE(use, nullptr);
  table_.SetLimits({.max_connections = 4, .max_per_address = 4, .max_message_bytes = 0});
  for (int i = 0; i < 20; ++i) {
    pair.Send(100'000);
    use->messages += 1;
    use->message_bytes += 100'000;
    Pass(absl::Milliseconds(100));
  }
  EXPECT_FALSE(pair.IsShutDown()) << "all of it was messages";
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(ConnectionTableTest, AFloodIsShutDownAndAnUnfinishedMessageInTheEnd) {
  Pair flood;
  Pair unfinished;
  ASSERT_TRUE(Admit(flood));
  ASSERT_TRUE(Admit(unfinished));
  table_.CountStart(flood.grpc_name(), kWriter, now_);
  table_.CountStart(unfinished.grpc_name(), kWriter, now_);
  Pass(absl::Seconds(2));
  table_.SetLimits({.max_connections = 4,
                    .max_per_address = 4,
                    .max_message_bytes = 0,
                    .patience = absl::Seconds(20)});
  unfinished.Send(200'000);
  std::string all(4 << 20, 'x');
  size_t sent = 0;
  for (; sent < (2u << 20); sent += 100'000) {
    flood.Send(100'000);
    while (recv(flood.fd(), all.data(), all.size(), MSG_DONTWAIT) > 0) {
    }
  }
  Pass(absl::Seconds(2));
  EXPECT_TRUE(flood.IsShutDown());
  EXPECT_EQ(Counter("tacho_connections_closed_total", "flood"), 1);
  EXPECT_FALSE(unfinished.IsShutDown());
  Pass(absl::Seconds(21));
  EXPECT_TRUE(unfinished.IsShutDown());
  EXPECT_EQ(Counter("tacho_connections_closed_total", "unfinished"), 1);
}

// Sends that much within one sweep, without a whole message.
void SendUnexplained(Pair* pair, size_t bytes) {
  std::string all(4 << 20, 'x');
  for (size_t sent = 0; sent < bytes; sent += 100'000) {
    pair->Send(100'000);
    while (recv(pair->fd(), all.data(), all.size(), MSG_DONTWAIT) > 0) {
    }
  }
}

TEST_F(ConnectionTableTest, MessageAboveTheLimitIsReadIfItsAgentWasWelcomed) {
  Pair stranger;
  Pair agent;
  for (const Pair* pair : {&stranger, &agent}) {
    ASSERT_TRUE(Admit(*pair));
    table_.CountStart(pair->grpc_name(), kWriter, now_);
  }
  table_.SetLimits({.max_connections = 9,
                    .max_per_address = 9,
                    .max_message_bytes = 100'000,
                    .max_read_bytes = 3 << 20});
  table_.Find(agent.grpc_name())->welcomed = true;
  SendUnexplained(&stranger, 3 << 20);
  SendUnexplained(&agent, 3 << 20);
  Pass(absl::Seconds(2));
  EXPECT_FALSE(agent.IsShutDown()) << "the limit is told on its stream";
  EXPECT_TRUE(stranger.IsShutDown());
  EXPECT_EQ(Counter("tacho_connections_closed_total", "flood"), 1);
}

TEST_F(ConnectionTableTest, WelcomedAgentThatSendsTooMuchHarmsNoOtherOfItsAddress) {
  table_.SetLimits({.max_connections = 99,
                    .max_per_address = 99,
                    .max_message_bytes = 100'000,
                    .max_read_bytes = 100'000});
  const auto send_too_much = [this] {
    Pair agent;
    ASSERT_TRUE(Admit(agent));
    table_.CountStart(agent.grpc_name(), kWriter, now_);
    table_.Find(agent.grpc_name())->welcomed = true;
    SendUnexplained(&agent, 2 << 20);
    Pass(absl::Seconds(2));
    EXPECT_TRUE(agent.IsShutDown());
  };
  for (int n = 0; n < 5; ++n) send_too_much();
  EXPECT_EQ(Counter("tacho_connections_closed_total", "oversized"), 5);
  std::vector<Pair> others(20);
  for (const Pair& other : others) EXPECT_TRUE(Admit(other));
  EXPECT_EQ(Counter("tacho_connections_refused_total", "penalty"), 0);
  for (Pair& other : others) other.CloseServer();
}

TEST_F(ConnectionTableTest, FloodsThatBeginWithAHelloEndThePatienceWithTheirAddress) {
  table_.SetLimits(
      {.max_connections = 99, .max_per_address = 99, .max_message_bytes = 0, .max_read_bytes = 0});
  int admitted = 0;
  for (int n = 0; n < 40; ++n) {
    Pair agent;
    if (!Admit(agent)) continue;
    ++admitted;
    table_.CountStart(agent.grpc_name(), kWriter, now_);
    table_.Find(agent.grpc_name())->welcomed = true;
    SendUnexplained(&agent, 2 << 20);
    Pass(absl::Milliseconds(50));
    resident_ += 20 << 20;  // So that all are looked at.
  }
  EXPECT_LT(admitted, 25);
  EXPECT_GT(Counter("tacho_connections_refused_total", "penalty"), 10);
}

TEST_F(ConnectionTableTest, WithoutACallLittleIsForgivenAndWhatIsQueuedIsDropped) {
  Pair early;
  Pair flood;
  ASSERT_TRUE(Admit(early));
  ASSERT_TRUE(Admit(flood));
  // Handshake, headers and a window of data, before the call is begun.
  early.Send(90'000);
  flood.Send(90'000);
  std::string read(90'000, 'x');
  ASSERT_EQ(recv(flood.fd(), read.data(), read.size(), MSG_WAITALL), 90'000);
  flood.Send(90'000);
  Pass(absl::Milliseconds(5));
  EXPECT_FALSE(early.IsShutDown());
  EXPECT_TRUE(flood.IsShutDown());
  EXPECT_EQ(Counter("tacho_connections_closed_total", "flood"), 1);
  int queued = -1;
  ASSERT_EQ(ioctl(flood.fd(), FIONREAD, &queued), 0);
  EXPECT_EQ(queued, 0);
  ASSERT_EQ(ioctl(early.fd(), FIONREAD, &queued), 0);
  EXPECT_EQ(queued, 90'000);
}

TEST_F(ConnectionTableTest, AnAddressWhoseConnectionsEndWithoutACallGetsFewer) {
  for (int n = 0; n < 10; ++n) {
    Pair pair;
    ASSERT_TRUE(Admit(pair)) << n;
    EXPECT_TRUE(table_.Sweep(now_)) << "a new one is looked at soon";
    pair.CloseServer();
    Pass(absl::Milliseconds(20));
  }
  Pair last;
  ASSERT_TRUE(Admit(last));
  last.CloseServer();
  Pass(absl::Milliseconds(20));
  int admitted = 0;
  for (int n = 0; n < 100; ++n) {
    Pair pair;
    if (Admit(pair)) ++admitted;
    pair.CloseServer();
    Pass(absl::Milliseconds(1));
  }
  EXPECT_LE(admitted, 6) << "five a second";
  EXPECT_GT(Counter("tacho_connections_refused_total", "penalty"), 90);
  Pass(absl::Seconds(60));
  Pair later;
  EXPECT_TRUE(Admit(later)) << "it is forgiven";
}

TEST_F(ConnectionTableTest, ConnectionsWithACallMayEndAsOftenAsTheyLike) {
  for (int n = 0; n < 100; ++n) {
    Pair pair;
    ASSERT_TRUE(Admit(pair)) << n;
    table_.CountStart(pair.grpc_name(), kWriter, now_);
    pair.CloseServer();
    Pass(absl::Milliseconds(20));
  }
}

// Half a day of pings is as much as the beginning of a message.
TEST_F(ConnectionTableTest, AnIdleConnectionMayPingForAsLongAsItLikes) {
  Pair idle;
  ASSERT_TRUE(Admit(idle));
  table_.CountStart(idle.grpc_name(), kWriter, now_);
  std::string all(4 << 20, 'x');
  for (int quarter = 0; quarter < 48; ++quarter) {
    idle.Send(15 * 60 * 5);
    while (recv(idle.fd(), all.data(), all.size(), MSG_DONTWAIT) > 0) {
    }
    Pass(absl::Minutes(15));
    ASSERT_FALSE(idle.IsShutDown()) << "after " << quarter << " quarters of an hour";
  }
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(ConnectionTableTest, WhileTheProcessGrowsFastAllConnectionsAreLookedAt) {
  Pair old;
  ASSERT_TRUE(Admit(old));
  table_.CountStart(old.grpc_name(), kWriter, now_);
  Pass(absl::Seconds(10));
  Pass(absl::Milliseconds(50));
  table_.SetLimits({.max_connections = 4, .max_per_address = 4, .max_message_bytes = 0});
  std::string all(4 << 20, 'x');
  for (size_t sent = 0; sent < (2u << 20); sent += 100'000) {
    old.Send(100'000);
    while (recv(old.fd(), all.data(), all.size(), MSG_DONTWAIT) > 0) {
    }
  }
  Pass(absl::Milliseconds(50));
  EXPECT_FALSE(old.IsShutDown()) << "its turn is in 2 s";
  resident_ += 20 << 20;
  Pass(absl::Milliseconds(50));
  EXPECT_TRUE(old.IsShutDown());
}
}  // namespace
}  // namespace tacho::server::edge
