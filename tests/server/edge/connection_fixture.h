// Connections on loopback, and the table that admits them, on a clock that tests move.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "server/edge/connection_table.h"
#include "server/edge/peer_address.h"

namespace tacho::server::edge {

inline constexpr ConnectionTable::Caller kReader = ConnectionTable::Caller::kReader;
inline constexpr ConnectionTable::Caller kWriter = ConnectionTable::Caller::kWriter;

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

}  // namespace tacho::server::edge
