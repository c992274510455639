#include "proto/base/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tacho {
namespace {

absl::Status Failed(absl::string_view doing) {
  return absl::ErrnoToStatus(errno, absl::StrCat("NOTIFY_SOCKET: ", doing));
}

}  // namespace

absl::Status ServiceManager::Ready(absl::string_view status) const {
  return Send("READY=1", status);
}

absl::Status ServiceManager::Stopping(absl::string_view status) const {
  return Send("STOPPING=1", status);
}

absl::Status ServiceManager::Send(absl::string_view state, absl::string_view status) const {
  if (socket_.empty()) return absl::OkStatus();
  sockaddr_un address{};
  if (socket_.size() >= sizeof(address.sun_path) || (socket_[0] != '/' && socket_[0] != '@')) {
    return absl::InvalidArgumentError(
        absl::StrCat("NOTIFY_SOCKET: '", socket_, "' is no path of a socket"));
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());

  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return Failed("make a socket");
  std::string message = absl::StrCat(state, "\nSTATUS=", status);
  std::replace(message.begin() + static_cast<std::ptrdiff_t>(state.size() + 1), message.end(), '\n',
               ' ');  // A line is an assignment.
  const ssize_t sent = ::sendto(descriptor, message.data(), message.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), size);
  absl::Status result = sent < 0 ? Failed("send") : absl::OkStatus();
  ::close(descriptor);
  return result;
}

}  // namespace tacho
