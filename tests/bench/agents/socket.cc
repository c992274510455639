#include "tests/bench/agents/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tacho::bench {
namespace {

constexpr uint32_t kConnectionsOfAddress = 20'000;  // Linux has 28,232 ports for them.

absl::Status Failed(const char* what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

bool BindLoopback(int fd, uint32_t number) {
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number);
  const int on = 1;
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  return bind(fd, reinterpret_cast<const sockaddr*>(&local), sizeof(local)) == 0;
}

}  // namespace

absl::StatusOr<PeerAddress> Resolve(const std::string& host_port) {
  const size_t colon = host_port.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("\"", host_port, "\" is not HOST:PORT"));
  }
  std::string host = host_port.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), host_port.c_str() + colon + 1, &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(host_port, ": ", gai_strerror(error)));
  }
  PeerAddress peer;
  std::memcpy(&peer.bytes, found->ai_addr, found->ai_addrlen);
  peer.size = found->ai_addrlen;
  if (found->ai_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    peer.is_loopback4 = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  freeaddrinfo(found);
  return peer;
}

absl::StatusOr<int> BeginConnect(const PeerAddress& peer, uint32_t index) {
  const int fd = socket(peer.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket", errno);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const uint32_t number = index / kConnectionsOfAddress;
  if (peer.is_loopback4 && number > 0 && !BindLoopback(fd, number)) {
    const int error = errno;
    close(fd);
    return Failed("bind", error);
  }
  if (connect(fd, reinterpret_cast<const sockaddr*>(&peer.bytes), peer.size) == 0 ||
      errno == EINPROGRESS) {
    return fd;
  }
  const int error = errno;
  close(fd);
  return Failed("connect", error);
}

int ConnectError(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace tacho::bench
