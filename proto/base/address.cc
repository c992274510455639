#include "proto/base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace tacho::config {
namespace {

constexpr uint8_t kLoopbackNet = 127;

bool IsLoopbackV6(const in6_addr& address) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) return address.s6_addr[12] == kLoopbackNet;
  return IN6_IS_ADDR_LOOPBACK(&address);
}

}  // namespace

std::string HostOf(absl::string_view address) {
  if (!address.empty() && address.front() == '[') {
    const size_t close = address.find(']');
    return std::string(close == absl::string_view::npos ? address : address.substr(1, close - 1));
  }
  const size_t colon = address.rfind(':');
  // More than one colon without brackets is an IPv6 address without a port.
  if (colon == absl::string_view::npos || address.find(':') != colon) return std::string(address);
  return std::string(address.substr(0, colon));
}

bool IsLoopback(absl::string_view address) {
  const std::string host = HostOf(address);
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == kLoopbackNet;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IsLoopbackV6(v6);
  const std::string name = absl::AsciiStrToLower(host);
  return name == "localhost" || absl::EndsWith(name, ".localhost");
}

}  // namespace tacho::config
