// TCP connections that are opened without waiting for them.
#pragma once

#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"

namespace tacho::bench {

struct PeerAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  bool is_loopback4 = false;
};

// "HOST:PORT"; HOST may be a name, or an IPv6 address in brackets. Waits for the resolver.
absl::StatusOr<PeerAddress> Resolve(const std::string& host_port);

// Begins connecting; the descriptor becomes writable when that has ended. `index` spreads more
// connections than there are ports over several addresses of the loopback network.
//   any error  nothing was opened: out of descriptors, or refused at once.
absl::StatusOr<int> BeginConnect(const PeerAddress& peer, uint32_t index);

// How connecting has ended: 0, or what connect() would have left in errno.
int ConnectError(int fd);

}  // namespace tacho::bench
