#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "server/edge/connection_table.h"
#include "server/edge/listener.h"
#include "server/edge/peer_address.h"

namespace tacho::server::edge {
namespace {

using testing::ElementsAre;

constexpr ConnectionTable::Caller kReader = ConnectionTable::Caller::kReader;
constexpr ConnectionTable::Caller kWriter = ConnectionTable::Caller::kWriter;

// Both ends of a connection on loopback.
class Pair {
 public:
  Pair() {
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(listen(listening, 1), 0);
    EXPECT_EQ(getsockname(listening, reinterpret_cast<sockaddr*>(&name), &size), 0);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client_, reinterpret_cast<sockaddr*>(&name), size), 0);
    server_ = accept(listening, reinterpret_cast<sockaddr*>(&name), &size);
    peer_ = *PeerOf(reinterpret_cast<sockaddr*>(&name));
    close(listening);
  }
  ~Pair() {
    close(client_);
    CloseServer();
  }
  void CloseServer() {
    if (server_ >= 0) close(server_);
    server_ = -1;
  }
  // Arrives; is not read.
  void Send(size_t bytes) {
    const std::string data(bytes, 'x');
    ASSERT_EQ(send(client_, data.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
    char all[1];
    while (recv(server_, all, 1, MSG_PEEK) != 1) {
    }
  }
  bool IsShutDown() const {
    char byte = 0;
    return recv(client_, &byte, 1, MSG_DONTWAIT) == 0;
  }
  // All that the client has received.
  std::string Received() const {
    std::string bytes(4096, 0);
    const ssize_t read = recv(client_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return bytes.substr(0, read < 0 ? 0 : static_cast<size_t>(read));
  }
  void SendBytes(const std::string& bytes) {
    ASSERT_EQ(send(client_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  int fd() const { return server_; }
  const PeerAddress& peer() const { return peer_; }
  std::string grpc_name() const { return "ipv4:" + ToString(peer_); }

 private:
  int client_ = -1;
  int server_ = -1;
  PeerAddress peer_;
};

class ConnectionTableTest : public testing::Test {
 protected:
  bool Admit(const Pair& pair) { return table_.Admit(pair.fd(), pair.peer(), now_); }
  void Pass(absl::Duration time) {
    now_ += time;
    table_.Sweep(now_);
  }
  double Counter(const std::string& name, const std::string& reason) {
    for (const auto& family : registry_.Collect()) {
      if (family.name != name) continue;
      for (const auto& metric : family.metric) {
        if (metric.label[0].value == reason) return metric.counter.value;
      }
    }
    return -1;
  }

  prometheus::Registry registry_;
  std::vector<std::string> logged_;
  bool memory_short_ = false;
  uint64_t resident_ = 0;
  ConnectionTable table_{{.limits = {.max_connections = 4,
                                     .max_per_address = 3,
                                     .starts_per_second = 10,
                                     .max_message_bytes = 1 << 20,
                                     .patience = absl::Seconds(20)},
                          .registry = &registry_,
                          .memory_short = [this] { return memory_short_; },
                          .log = [this](absl::string_view line) { logged_.emplace_back(line); },
                          .resident = [this] { return resident_; }}};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

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

class RefusedConnectionTest : public ConnectionTableTest {
 protected:
  RefusedConnectionTest() {
    table_.SetLimits({.max_connections = 9, .max_per_address = 1});
    EXPECT_TRUE(Admit(first_));
  }
  // As gRPC's clients begin: preface, SETTINGS, and a request on stream 1 (its headers do not
  // matter here).
  static std::string Request() {
    using std::string_literals::operator""s;
    return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\1\1\5\0\0\0\1\x83"s;
  }

  Pair first_;
};

TEST_F(RefusedConnectionTest, ClientIsToldTheReasonInWords) {
  Pair refused;
  ASSERT_FALSE(Admit(refused));
  refused.CloseServer();  // As the listener does.
  EXPECT_THAT(refused.Received(), testing::SizeIs(9)) << "SETTINGS";
  const std::string request = Request();
  refused.SendBytes(request.substr(0, 30));
  Pass(absl::Milliseconds(5));
  refused.SendBytes(request.substr(30));
  Pass(absl::Milliseconds(5));
  const std::string answer = refused.Received();
  EXPECT_THAT(answer, testing::HasSubstr("grpc-status"));
  EXPECT_THAT(answer, testing::HasSubstr("quotas.max_connections_per_address"));
  EXPECT_FALSE(refused.IsShutDown());
  Pass(absl::Seconds(2));
  EXPECT_TRUE(refused.IsShutDown()) << "the end comes in order";
}

TEST_F(RefusedConnectionTest, PenaltySaysWhatBroughtItAndHowLongItLasts) {
  table_.SetLimits({.max_connections = 99, .max_per_address = 99, .starts_per_second = 10});
  for (int i = 0; i < 11; ++i) table_.CountStart(first_.grpc_name(), kWriter, now_);
  ASSERT_TRUE(first_.IsShutDown());
  now_ += absl::Seconds(3);
  std::vector<Pair> more(10);
  std::string told;
  for (Pair& pair : more) {
    if (Admit(pair)) continue;
    pair.SendBytes(Request());
    Pass(absl::Milliseconds(5));
    told = pair.Received();
  }
  EXPECT_THAT(told, testing::HasSubstr("for another 7s"));
  EXPECT_THAT(told, testing::HasSubstr("quotas.stream_starts_per_second"));
}

TEST_F(RefusedConnectionTest, FewAreToldAndNoneKeepsItsPlace) {
  std::vector<Pair> many(RefusalAnswers::kMost + 1);
  for (Pair& pair : many) {
    ASSERT_FALSE(Admit(pair));
    pair.CloseServer();
  }
  EXPECT_TRUE(many.back().IsShutDown()) << "closed without a word";
  EXPECT_FALSE(many.front().IsShutDown());
  many[1].SendBytes(std::string(RefusalAnswers::kMaxBytes + 1, 'x'));
  for (int i = 0; i < 10; ++i) Pass(absl::Milliseconds(5));
  Pair next;
  EXPECT_FALSE(Admit(next));
  next.CloseServer();
  EXPECT_THAT(next.Received(), testing::SizeIs(9)) << "in the place of the one that sent too much";
}

TEST(PeerAddressTest, NamesOfGrpcAreRead) {
  EXPECT_EQ(ToString(*ParsePeer("ipv4:10.1.2.3:55")), "10.1.2.3:55");
  EXPECT_EQ(ToString(*ParsePeer("ipv6:%5B::1%5D:4711")), "[::1]:4711");
  EXPECT_EQ(ToString(*ParsePeer("ipv6:[fe80::1%25eth0]:4711")), "[fe80::1]:4711");
  for (const char* wrong : {"", "unix:/x", "ipv4:", "ipv4:1.2.3:4", "ipv6:x:1"}) {
    EXPECT_FALSE(ParsePeer(wrong).has_value()) << wrong;
  }
  const auto network = [](const char* peer) { return ToString(NetworkOf(*ParsePeer(peer))); };
  EXPECT_EQ(network("ipv4:10.1.2.3:55"), "10.1.2.3:0");
  EXPECT_EQ(network("ipv6:[2001:db8:1:2:3:4:5:6]:55"), "[2001:db8:1:2::]:0");
  EXPECT_EQ(network("ipv6:[::ffff:10.1.2.3]:55"), "10.1.2.3:0") << "the same over both families";
}

TEST(ListenerTest, TakesAFreePortOnEveryAddressAndRefusesATakenOne) {
  auto listener = Listener::Bind("127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_GT((*listener)->port(), 0);
  const auto second = Listener::Bind("127.0.0.1:" + std::to_string((*listener)->port()));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Listener::Bind("no.such.host.invalid:0").status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Listener::Bind("localhost:0").ok());
}

// What gRPC's own pings would do for more: it is told not to send any.
TEST(ListenerTest, AHostThatVanishesIsNoticedByTheKernel) {
  auto listener = Listener::Bind("127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  prometheus::Registry registry;
  ConnectionTable table({.limits = {.max_connections = 1, .max_per_address = 1},
                         .registry = &registry,
                         .memory_short = [] { return false; },
                         .log = nullptr});
  std::promise<int> taken;
  (*listener)->Serve(&table, [&taken](int fd, const PeerAddress&) { taken.set_value(fd); });
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(static_cast<uint16_t>((*listener)->port()));
  ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  const int fd = taken.get_future().get();
  const auto option = [fd](int level, int which) {
    int value = 0;
    socklen_t size = sizeof(value);
    EXPECT_EQ(getsockopt(fd, level, which, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  const int given_up_ms = option(IPPROTO_TCP, TCP_USER_TIMEOUT);
  EXPECT_EQ(given_up_ms, 20'000);
  const int asked_twice_s = option(IPPROTO_TCP, TCP_KEEPIDLE) + option(IPPROTO_TCP, TCP_KEEPINTVL);
  EXPECT_LT(asked_twice_s * 1000, given_up_ms) << "one lost packet would end the connection";
  (*listener)->Stop();
  close(client);
  close(fd);
}

TEST(ListenerTest, DescriptorsAreLeftForOthers) {
  EXPECT_EQ(ConnectionsWithin(1024), 896u);
  EXPECT_EQ(ConnectionsWithin(20'000), 17'500u);
  EXPECT_EQ(ConnectionsWithin(1'000'000'000), 100'000u);
  EXPECT_EQ(ConnectionsWithin(64), 1u);
}

}  // namespace
}  // namespace tacho::server::edge
