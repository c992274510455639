#include "tests/chaos/faulty_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "absl/time/clock.h"

namespace tacho::chaos {
namespace {

constexpr size_t kReadBytes = 64u << 10;
constexpr size_t kMaxHeld = 256u << 10;  // Past it the sender feels that nobody reads.
constexpr int kTick = 1;                 // ms; pieces of a trickle are as far apart.
constexpr uint64_t kLingerBytes = 8;     // A tick, while the client comes back.
constexpr absl::Duration kLingerRest = absl::Milliseconds(20);  // The rest goes within this time.

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void Prepare(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

FaultyProxy::FaultyProxy() {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, any, size) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, any, &size) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Run(); });
}

FaultyProxy::~FaultyProxy() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_, 1);
  thread_.join();
  for (Connection& connection : connections_) CloseBoth(&connection, true);
  close(listener_);
  close(wake_);
}

void FaultyProxy::SetTarget(int port) {
  absl::MutexLock lock(&mutex_);
  target_ = port;
}

void FaultyProxy::Inject(const Fault& fault) {
  {
    absl::MutexLock lock(&mutex_);
    fault_ = fault;
    at_work_ = false;
    if (fault.after_bytes == 0) Trigger(absl::Now());
  }
  eventfd_write(wake_, 1);
}

void FaultyProxy::Heal() {
  {
    absl::MutexLock lock(&mutex_);
    fault_.reset();
    at_work_ = false;
  }
  eventfd_write(wake_, 1);
}

FaultyProxy::Stats FaultyProxy::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

void FaultyProxy::Run() {
  std::vector<pollfd> polls;
  for (;;) {
    polls.assign({{wake_, POLLIN, 0}, {listener_, POLLIN, 0}});
    bool ticking = false;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      const absl::Time now = absl::Now();
      if (at_work_ && now >= work_until_) {
        fault_.reset();
        at_work_ = false;
      }
      Accept();
      for (auto it = connections_.begin(); it != connections_.end();) {
        it = Move(&*it, now) ? std::next(it) : connections_.erase(it);
      }
      ticking = at_work_;
      for (const Connection& connection : connections_) {
        for (int side = 0; side < 2; ++side) {
          const bool full = connection.held[side].size() >= kMaxHeld;
          ticking = ticking || !connection.held[side].empty() || connection.linger_until;
          if (connection.fd[side] < 0 || full || connection.ended[side]) continue;
          polls.push_back({connection.fd[side], POLLIN, 0});
        }
      }
    }
    poll(polls.data(), polls.size(), ticking ? kTick : 1000);
    eventfd_t ignored = 0;
    eventfd_read(wake_, &ignored);
  }
}

void FaultyProxy::Accept() {
  for (;;) {
    int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    ++stats_.connections;
    const bool refused = at_work_ && fault_ && fault_->kind == Fault::Kind::kRefuse;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(target_);
    // Connecting to loopback succeeds or fails at once.
    if (refused ||
        connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      if (refused) ++stats_.refusals;
      Close(&client, true);
      Close(&server, true);
      continue;
    }
    Prepare(client);
    Prepare(server);
    Connection& connection = connections_.emplace_back();
    connection.fd[0] = client;
    connection.fd[1] = server;
  }
}

bool FaultyProxy::Move(Connection* connection, absl::Time now) {
  // A cut may close the connection while its bytes are moved.
  for (int side = 0; side < 2; ++side) {
    if (!MoveFrom(side, connection, now)) {
      CloseBoth(connection, false);
      return false;
    }
  }
  if (connection->linger_until &&
      (connection->held[0].empty() || now >= *connection->linger_until)) {
    CloseBoth(connection, false);
    return false;
  }
  return connection->fd[1] >= 0 && !(connection->told[0] && connection->told[1]);
}

bool FaultyProxy::MoveFrom(int side, Connection* connection, absl::Time now) {
  const int from = connection->fd[side];
  std::string& held = connection->held[side];
  if (from >= 0 && !connection->ended[side] && held.size() < kMaxHeld) {
    char bytes[kReadBytes];
    const ssize_t size = read(from, bytes, sizeof(bytes));
    if (size > 0) held.append(bytes, static_cast<size_t>(size));
    if (size == 0) connection->ended[side] = true;
    if (size < 0 && errno != EAGAIN && errno != EINTR) return false;
  }
  const int to = connection->fd[1 - side];
  const uint64_t allowed = std::min<uint64_t>(held.size(), Allowance(side, *connection, now));
  if (to >= 0 && allowed > 0) {
    const ssize_t size = send(to, held.data(), allowed, MSG_NOSIGNAL);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    held.erase(0, static_cast<size_t>(size));
    CountBytes(side, static_cast<uint64_t>(size), now);
  }
  if (connection->ended[side] && held.empty() && !connection->told[side]) {
    if (connection->fd[1 - side] >= 0) shutdown(connection->fd[1 - side], SHUT_WR);
    connection->told[side] = true;
  }
  return true;
}

uint64_t FaultyProxy::Allowance(int side, const Connection& connection, absl::Time now) const {
  if (connection.linger_until) {
    return *connection.linger_until - now < kLingerRest ? UINT64_MAX : kLingerBytes;
  }
  if (!fault_ || side != static_cast<int>(fault_->from)) return UINT64_MAX;
  if (!at_work_) return fault_->after_bytes;
  if (fault_->kind == Fault::Kind::kStall) return 0;
  return fault_->kind == Fault::Kind::kTrickle ? fault_->chunk : UINT64_MAX;
}

void FaultyProxy::CountBytes(int side, uint64_t bytes, absl::Time now) {
  stats_.bytes += bytes;
  if (!fault_ || at_work_ || side != static_cast<int>(fault_->from)) return;
  fault_->after_bytes -= std::min(fault_->after_bytes, bytes);
  if (fault_->after_bytes == 0) Trigger(now);
}

void FaultyProxy::Trigger(absl::Time now) {
  at_work_ = true;
  work_until_ = now + fault_->duration;
  switch (fault_->kind) {
    case Fault::Kind::kCut:
      return CutAll(false, now);
    case Fault::Kind::kCutLingering:
      return CutAll(true, now);
    case Fault::Kind::kStall:
      ++stats_.stalls;
      return;
    case Fault::Kind::kTrickle:
      ++stats_.trickles;
      return;
    case Fault::Kind::kRefuse:
      return CutAll(false, now);
  }
}

void FaultyProxy::CutAll(bool linger, absl::Time now) {
  for (Connection& connection : connections_) {
    if (connection.fd[0] < 0) continue;
    ++(linger ? stats_.cuts_lingering : stats_.cuts);
    Close(&connection.fd[0], fault_->reset);
    if (linger && !connection.held[0].empty()) {
      connection.linger_until = now + fault_->duration;
    } else {
      Close(&connection.fd[1], fault_->reset);
    }
  }
}

void FaultyProxy::Close(int* fd, bool reset) {
  if (*fd < 0) return;
  if (reset) {
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }
  close(*fd);
  *fd = -1;
}

void FaultyProxy::CloseBoth(Connection* connection, bool reset) {
  Close(&connection->fd[0], reset);
  Close(&connection->fd[1], reset);
}

}  // namespace tacho::chaos
