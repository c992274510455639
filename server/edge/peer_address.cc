#include "server/edge/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tacho::server::edge {
namespace {

constexpr uint8_t kV4Prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool IsV4(const PeerAddress& peer) {
  return std::equal(std::begin(kV4Prefix), std::end(kV4Prefix), peer.address.begin());
}

void SetV4(const in_addr& address, PeerAddress* peer) {
  std::copy(std::begin(kV4Prefix), std::end(kV4Prefix), peer->address.begin());
  std::memcpy(peer->address.data() + sizeof(kV4Prefix), &address, sizeof(address));
}

}  // namespace

std::optional<PeerAddress> PeerOf(const sockaddr* address) {
  PeerAddress peer;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4 = {};
    std::memcpy(&v4, address, sizeof(v4));
    SetV4(v4.sin_addr, &peer);
    peer.port = ntohs(v4.sin_port);
    return peer;
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6 = {};
  std::memcpy(&v6, address, sizeof(v6));
  std::memcpy(peer.address.data(), &v6.sin6_addr, peer.address.size());
  peer.port = ntohs(v6.sin6_port);
  return peer;
}

std::optional<PeerAddress> ParsePeer(absl::string_view peer) {
  PeerAddress parsed;
  const size_t colon = peer.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(peer.substr(colon + 1), &port)) {
    return std::nullopt;
  }
  parsed.port = static_cast<uint16_t>(port);
  absl::string_view host = peer.substr(0, colon);
  if (absl::ConsumePrefix(&host, "ipv4:")) {
    in_addr v4 = {};
    if (inet_pton(AF_INET, std::string(host).c_str(), &v4) != 1) return std::nullopt;
    SetV4(v4, &parsed);
    return parsed;
  }
  if (!absl::ConsumePrefix(&host, "ipv6:")) return std::nullopt;
  if (!absl::ConsumePrefix(&host, "%5B")) absl::ConsumePrefix(&host, "[");
  if (!absl::ConsumeSuffix(&host, "%5D")) absl::ConsumeSuffix(&host, "]");
  host = host.substr(0, host.find('%'));  // A link's name is no part of the address.
  if (inet_pton(AF_INET6, std::string(host).c_str(), parsed.address.data()) != 1) {
    return std::nullopt;
  }
  return parsed;
}

PeerAddress NetworkOf(const PeerAddress& peer) {
  PeerAddress network = peer;
  network.port = 0;
  if (!IsV4(peer)) std::fill(network.address.begin() + 8, network.address.end(), uint8_t{0});
  return network;
}

std::string HostOf(const PeerAddress& peer) {
  char text[INET6_ADDRSTRLEN] = {};
  if (IsV4(peer)) {
    inet_ntop(AF_INET, peer.address.data() + sizeof(kV4Prefix), text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, peer.address.data(), text, sizeof(text));
  }
  return text;
}

std::string ToString(const PeerAddress& peer) {
  const std::string host = HostOf(peer);
  if (IsV4(peer)) return absl::StrCat(host, ":", peer.port);
  return absl::StrCat("[", host, "]:", peer.port);
}

}  // namespace tacho::server::edge
