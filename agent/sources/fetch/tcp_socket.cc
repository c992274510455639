#include "agent/sources/fetch/tcp_socket.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

std::string Why(int error) { return std::generic_category().message(error); }

absl::Status Await(int fd, short events, absl::Time deadline) {
  for (;;) {
    const absl::Duration left = deadline - MonotonicNow();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("no answer in time");
    pollfd waiting{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return absl::UnavailableError(Why(errno));
  }
}

absl::StatusOr<std::unique_ptr<TcpSocket>> ConnectOne(const addrinfo& address,
                                                      absl::Time deadline) {
  auto socket = std::make_unique<TcpSocket>(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket->fd() < 0) return absl::UnavailableError(Why(errno));
  if (::connect(socket->fd(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return absl::UnavailableError(Why(errno));
    TACHO_RETURN_IF_ERROR(socket->AwaitWritable(deadline));
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(socket->fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return absl::UnavailableError(Why(error));
  }
  return socket;
}

}  // namespace

TcpSocket::~TcpSocket() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status TcpSocket::AwaitReadable(absl::Time deadline) const {
  return Await(fd_, POLLIN, deadline);
}

absl::Status TcpSocket::AwaitWritable(absl::Time deadline) const {
  return Await(fd_, POLLOUT, deadline);
}

absl::Status TcpSocket::Send(absl::string_view bytes, absl::Time deadline) const {
  while (!bytes.empty()) {
    TACHO_RETURN_IF_ERROR(AwaitWritable(deadline));
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return absl::UnavailableError(Why(errno));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> TcpSocket::Receive(char* buffer, size_t size, absl::Time deadline) const {
  for (;;) {
    TACHO_RETURN_IF_ERROR(AwaitReadable(deadline));
    const ssize_t got = ::recv(fd_, buffer, size, 0);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EAGAIN && errno != EINTR) return absl::UnavailableError(Why(errno));
  }
}

absl::StatusOr<std::unique_ptr<TcpSocket>> ConnectTcp(const std::string& host,
                                                      const std::string& port,
                                                      absl::Time deadline) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (failed != 0) {
    return absl::UnavailableError(absl::StrCat(host, ": ", ::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  absl::Status last = absl::UnavailableError("the name has no address");
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    auto socket = ConnectOne(*one, deadline);
    if (socket.ok()) return socket;
    last = absl::Status(
        socket.status().code(),
        absl::StrCat("cannot connect to ", host, " port ", port, ": ", socket.status().message()));
  }
  return last;
}

}  // namespace tacho::agent
