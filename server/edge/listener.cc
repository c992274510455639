// Accepts connections itself and hands them to gRPC or the HTTP port, so that both have limits
// before anything is allocated, and so that running out of descriptors only pauses accepting.
#include "server/edge/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"

namespace tacho::server::edge {
namespace {

// A mass reconnect waits here rather than in the agents' back-off.
constexpr int kBacklog = 4096;
// Unacknowledged bytes may wait this long before the kernel gives a connection up.
constexpr unsigned kUserTimeoutMs = 20'000;
// And a peer that is silent for kIdleSeconds is asked whether it is there, until the same time has
// passed: a host that vanished is noticed after 20 s, and no single packet lost ends a connection.
constexpr int kIdleSeconds = 10;
constexpr int kAskAgainSeconds = 5;
constexpr absl::Duration kSweepEvery = absl::Milliseconds(50);
constexpr absl::Duration kSweepSoon = absl::Milliseconds(5);
constexpr uint64_t kLeastReserve = 128;

// To the peer it looks as if nobody listened, and no TIME_WAIT is left behind.
void CloseAtOnce(int fd) {
  const linger none = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  close(fd);
}

void SetFlag(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof(value));
}

absl::Status Refused(absl::string_view doing) {
  return absl::UnavailableError(absl::StrCat(doing, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Bind(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = colon == std::string::npos ? address : address.substr(0, colon);
  const std::string port = colon == std::string::npos ? "0" : address.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return absl::UnavailableError(absl::StrCat(address, ": ", gai_strerror(error)));
  std::unique_ptr<Listener> listener(new Listener());
  absl::Status status;
  for (const addrinfo* each = found; each != nullptr && status.ok(); each = each->ai_next) {
    status = listener->BindOne(*each);
  }
  freeaddrinfo(found);
  if (status.ok() && pipe2(listener->stop_pipe_, O_CLOEXEC) != 0) status = Refused("pipe");
  if (!status.ok()) return status;
  return listener;
}

absl::Status Listener::BindOne(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  // A name may have an address of a family that this machine does not speak.
  if (fd < 0) return errno == EAFNOSUPPORT ? absl::OkStatus() : Refused("socket");
  sockets_.push_back(fd);
  SetFlag(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  // "[::]" is for IPv4 too.
  if (address.ai_family == AF_INET6) SetFlag(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // Accepted sockets inherit all of these.
  SetFlag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetFlag(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  SetFlag(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetFlag(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  SetFlag(fd, IPPROTO_TCP, TCP_KEEPINTVL, kAskAgainSeconds);
  sockaddr_storage name = {};
  std::memcpy(&name, address.ai_addr, address.ai_addrlen);
  // The first address draws the port, if any may; the others take the same.
  const auto port = htons(static_cast<uint16_t>(port_));
  if (port_ != 0 && address.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&name)->sin6_port = port;
  } else if (port_ != 0) {
    reinterpret_cast<sockaddr_in*>(&name)->sin_port = port;
  }
  if (bind(fd, reinterpret_cast<sockaddr*>(&name), address.ai_addrlen) != 0) return Refused("bind");
  if (listen(fd, kBacklog) != 0) return Refused("listen");
  socklen_t size = sizeof(name);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0)
    return Refused("getsockname");
  const auto bound = PeerOf(reinterpret_cast<sockaddr*>(&name));
  if (bound.has_value()) port_ = bound->port;
  return absl::OkStatus();
}

Listener::~Listener() {
  Stop();
  for (const int fd : sockets_) close(fd);
  for (const int fd : stop_pipe_) {
    if (fd >= 0) close(fd);
  }
}

void Listener::Serve(Gate* gate, std::function<void(int fd, const PeerAddress& peer)> take) {
  TACHO_CHECK(gate != nullptr && gate_ == nullptr);
  gate_ = gate;
  take_ = std::move(take);
  thread_ = std::thread([this] { Accept(); });
  sweeper_ = std::thread([this] { Sweep(); });
}

void Listener::Stop() {
  if (!thread_.joinable()) return;
  const char byte = 0;
  while (write(stop_pipe_[1], &byte, 1) < 0 && errno == EINTR) {
  }
  thread_.join();
  for (const int fd : sockets_) close(fd);
  sockets_.clear();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  sweeper_.join();
}

void Listener::Accept() {
  pthread_setname_np(pthread_self(), "listener");
  std::vector<pollfd> polled;
  for (const int fd : sockets_) polled.push_back({fd, POLLIN, 0});
  polled.push_back({stop_pipe_[0], POLLIN, 0});
  for (;;) {
    poll(polled.data(), polled.size(), -1);
    if (polled.back().revents != 0) return;
    for (size_t i = 0; i + 1 < polled.size(); ++i) {
      // Takes turns, so that Stop() does not wait long.
      for (int n = 0; n < 64 && polled[i].revents != 0 && AcceptOne(polled[i].fd); ++n) {
      }
    }
  }
}

void Listener::Sweep() {
  pthread_setname_np(pthread_self(), "sweeper");
  for (absl::Duration pause = kSweepEvery;;) {
    {
      const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || accepted_;
      };
      absl::MutexLock lock(&mutex_);
      const absl::Time soon = MonotonicNow() + std::min(pause, kSweepSoon);
      AwaitFor(&mutex_, absl::Condition(&wanted), pause);
      // Many connections that come together need one sweep.
      AwaitUntil(&mutex_, absl::Condition(&stopping_), soon);
      if (stopping_) return;
      accepted_ = false;
    }
    pause = gate_->Sweep(MonotonicNow()) ? kSweepSoon : kSweepEvery;
  }
}

bool Listener::AcceptOne(int listening) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  const int fd =
      accept4(listening, reinterpret_cast<sockaddr*>(&name), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    // Out of descriptors: those in the backlog wait until some are free again.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      absl::SleepFor(absl::Milliseconds(50));
    }
    return errno == ECONNABORTED || errno == EINTR;
  }
  const auto peer = PeerOf(reinterpret_cast<sockaddr*>(&name));
  if (peer.has_value() && gate_->Admit(fd, *peer, MonotonicNow())) {
    {
      absl::MutexLock lock(&mutex_);
      accepted_ = true;
    }
    take_(fd, *peer);
  } else {
    CloseAtOnce(fd);
  }
  return true;
}

uint64_t FileLimit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

uint64_t RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return FileLimit();
}

uint64_t ConnectionsWithin(uint64_t file_limit) {
  // More would cost gRPC's and the kernel's memory, not descriptors.
  constexpr uint64_t kMost = 100'000;
  const uint64_t reserve = std::max(kLeastReserve, file_limit / 8);
  return std::min(file_limit - std::min(reserve, file_limit - 1), kMost);
}

}  // namespace tacho::server::edge
