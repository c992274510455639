#include "server/edge/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>

#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "server/edge/connection_table.h"
#include "server/edge/peer_address.h"

namespace tacho::server::edge {
namespace {

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
