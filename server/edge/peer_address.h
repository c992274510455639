// The address of the other end of a connection.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace tacho::server::edge {

// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d, with a port.
struct PeerAddress {
  std::array<uint8_t, 16> address = {};
  uint16_t port = 0;

  bool operator==(const PeerAddress&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const PeerAddress& peer) {
    return H::combine(std::move(h), peer.address, peer.port);
  }
};

// nullopt for anything that is neither IPv4 nor IPv6.
std::optional<PeerAddress> PeerOf(const sockaddr* address);
// Parses what grpc::ServerContext::peer() returns: "ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711".
std::optional<PeerAddress> ParsePeer(absl::string_view peer);
// The part that counts as one address: a whole IPv4 address, or the first 64 bits of an IPv6
// address, because providers give each customer at least that many. Its port is 0.
PeerAddress NetworkOf(const PeerAddress& peer);
// "127.0.0.1", "::1".
std::string HostOf(const PeerAddress& peer);
// "127.0.0.1:4711", "[::1]:4711".
std::string ToString(const PeerAddress& peer);

}  // namespace tacho::server::edge
