#include "agent/diagnose/tcp_connect.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "agent/sources/fetch/tcp_socket.h"
#include "proto/base/clock.h"

namespace tacho::agent {

absl::StatusOr<std::vector<std::string>> ResolveName(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (failed != 0) return absl::UnavailableError(::gai_strerror(failed));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text);
    }
  }
  return addresses;
}

absl::StatusOr<absl::Duration> TcpConnect(const std::string& host, const std::string& port,
                                          absl::Duration timeout) {
  const absl::Time began = MonotonicNow();
  const auto socket = ConnectTcp(host, port, began + timeout);
  if (!socket.ok()) return socket.status();
  return MonotonicNow() - began;
}

}  // namespace tacho::agent
