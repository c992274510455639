// Sockets of StatsD. The reader waits in poll() for all of them and never blocks elsewhere but for
// the lock of the sums, which a flush holds for some milliseconds; the kernel keeps datagrams
// meanwhile.
#include "server/interop/statsd_door.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/interop/formats/statsd_lines.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::interop {
namespace {

// The kernel gives as much of it as net.core.rmem_max allows.
constexpr int kReceiveBytes = 4 << 20;
constexpr int kStatsdBacklog = 128;
// Sockets take turns after so many datagrams or reads.
constexpr int kTurn = 64;
// When the door stops, other members have so long to store their part of the last write.
constexpr absl::Duration kLastWrite = absl::Seconds(5);

absl::Status SocketFailed(absl::string_view doing) {
  return absl::UnavailableError(absl::StrCat(doing, ": ", std::strerror(errno)));
}

void CloseIfOpen(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

// A bound socket of the address, and its port.
absl::StatusOr<int> BindStatsd(const addrinfo& address, int type, int* port) {
  const int fd = socket(address.ai_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return SocketFailed("socket");
  const int on = 1;
  if (type == SOCK_STREAM) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_storage name = {};
  std::memcpy(&name, address.ai_addr, address.ai_addrlen);
  in_port_t& wanted = address.ai_family == AF_INET6
                          ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                          : reinterpret_cast<sockaddr_in*>(&name)->sin_port;
  if (*port != 0) wanted = htons(static_cast<uint16_t>(*port));
  socklen_t size = sizeof(name);
  if (bind(fd, reinterpret_cast<sockaddr*>(&name), address.ai_addrlen) != 0 ||
      (type == SOCK_STREAM && listen(fd, kStatsdBacklog) != 0) ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    const absl::Status status = SocketFailed("bind");
    close(fd);
    return status;
  }
  *port = ntohs(wanted);
  return fd;
}

}  // namespace

StatsdDoor::StatsdDoor(StatsdDoorOptions options)
    : options_(std::move(options)),
      sums_(options_.sums),
      buffer_(kMaxLineBytes),
      samples_(metrics::NewCounter(options_.registry, "tacho_interop_samples_total",
                                   {{"protocol", "statsd"}})),
      values_(metrics::NewCounter(options_.registry, "tacho_interop_statsd_values_total")),
      series_(metrics::NewGauge(options_.registry, "tacho_interop_statsd_series")),
      by_kernel_(Dropped("kernel")),
      by_connection_(Dropped("connection")),
      unreadable_(Dropped("unreadable")),
      events_(Dropped("event")),
      service_checks_(Dropped("service_check")),
      no_room_(Dropped("no_room")),
      other_type_(Dropped("other_type")),
      not_stored_(Dropped("not_stored")) {
  TACHO_CHECK(options_.intake != nullptr);
}

prometheus::Counter& StatsdDoor::Dropped(const char* reason) const {
  return metrics::NewCounter(options_.registry, "tacho_interop_statsd_dropped_total",
                             {{"reason", reason}});
}

absl::StatusOr<std::unique_ptr<StatsdDoor>> StatsdDoor::Open(StatsdDoorOptions options) {
  std::unique_ptr<StatsdDoor> door(new StatsdDoor(std::move(options)));
  if (auto bound = door->Bind(); !bound.ok()) {
    return absl::UnavailableError(
        absl::StrCat("interop.statsd.listen: ", door->options_.address, ": ", bound.message()));
  }
  door->reader_ = std::thread([door = door.get()] { door->Read(); });
  door->flusher_.Start("statsd-flush", RepeatingThread::Priority::kUsual, door->options_.interval,
                       [door = door.get()] { door->Flush(); });
  door->options_.log.Info("statsd listens", {{"port", absl::StrCat(door->port_)}});
  return door;
}

absl::Status StatsdDoor::Bind() {
  const std::string& address = options_.address;
  const std::string host = config::HostOf(address);
  const std::string port = address.substr(address.rfind(':') + 1);
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> freed(found, freeaddrinfo);
  TACHO_ASSIGN_OR_RETURN(listening_, BindStatsd(*found, SOCK_STREAM, &port_));
  TACHO_ASSIGN_OR_RETURN(datagrams_, BindStatsd(*found, SOCK_DGRAM, &port_));
  const int on = 1;
  setsockopt(datagrams_, SOL_SOCKET, SO_RCVBUF, &kReceiveBytes, sizeof(kReceiveBytes));
  setsockopt(datagrams_, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
  return pipe2(stop_pipe_, O_CLOEXEC) == 0 ? absl::OkStatus() : SocketFailed("pipe");
}

StatsdDoor::~StatsdDoor() {
  Stop();
  CloseIfOpen(&datagrams_);
  CloseIfOpen(&listening_);
  for (int& fd : stop_pipe_) CloseIfOpen(&fd);
}

void StatsdDoor::Stop() {
  flusher_.Stop();
  if (!reader_.joinable()) return;
  CloseIfOpen(&stop_pipe_[1]);
  reader_.join();
  for (Connection& connection : connections_) CloseIfOpen(&connection.fd);
  connections_.clear();
  AwaitWrite();
  if (!writing_.exchange(true)) Write();
  AwaitWrite();
}

void StatsdDoor::AwaitWrite() const {
  if (options_.intake->elsewhere() == nullptr) return;
  const absl::Time until = MonotonicNow() + kLastWrite;
  while (writing_ && MonotonicNow() < until) absl::SleepFor(absl::Milliseconds(5));
}

void StatsdDoor::Read() {
  pthread_setname_np(pthread_self(), "statsd");
  std::vector<pollfd> polled;
  for (;;) {
    polled = {{stop_pipe_[0], POLLIN, 0}, {datagrams_, POLLIN, 0}, {listening_, POLLIN, 0}};
    for (const Connection& connection : connections_) polled.push_back({connection.fd, POLLIN, 0});
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    // What has come before a stop is read.
    if (polled[1].revents != 0) ReadDatagrams();
    size_t at = 3;
    std::erase_if(connections_, [&](Connection& connection) {
      if (polled[at++].revents == 0 || ReadConnection(&connection)) return false;
      close(connection.fd);
      return true;
    });
    if (polled[0].revents != 0) return;
    if (polled[2].revents != 0) Accept();
  }
}

void StatsdDoor::ReadDatagrams() {
  for (int i = 0; i < kTurn; ++i) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(uint32_t))];
    iovec into = {buffer_.data(), buffer_.size()};
    msghdr message = {};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t size = recvmsg(datagrams_, &message, 0);
    if (size < 0) return;
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SO_RXQ_OVFL) continue;
      uint32_t dropped = 0;
      std::memcpy(&dropped, CMSG_DATA(one), sizeof(dropped));
      by_kernel_.Increment(static_cast<double>(dropped - std::exchange(kernel_dropped_, dropped)));
    }
    Take({buffer_.data(), static_cast<size_t>(size)});
  }
}

void StatsdDoor::Accept() {
  const int fd = accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    // Out of descriptors: those in the backlog wait until some are free again.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    return;
  }
  if (connections_.size() >= kMaxConnections) {
    by_connection_.Increment();
    close(fd);
    return;
  }
  connections_.push_back({fd, {}});
}

bool StatsdDoor::ReadConnection(Connection* connection) {
  for (int i = 0; i < kTurn; ++i) {
    const ssize_t size = recv(connection->fd, buffer_.data(), buffer_.size(), 0);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    std::string& begun = connection->begun;
    if (size == 0) {
      Take(begun);
      return false;
    }
    const absl::string_view come(buffer_.data(), static_cast<size_t>(size));
    const size_t end = come.rfind('\n');
    if (end == absl::string_view::npos) {
      begun.append(come.data(), come.size());
    } else {
      begun.append(come.data(), end);
      Take(begun);
      begun.assign(come.data() + end + 1, come.size() - end - 1);
    }
    if (begun.size() > kMaxLineBytes) {
      by_connection_.Increment();
      return false;
    }
  }
  return true;
}

void StatsdDoor::Take(absl::string_view text) {
  const StatsdLines lines = ReadStatsdLines(text);
  events_.Increment(static_cast<double>(lines.events));
  service_checks_.Increment(static_cast<double>(lines.service_checks));
  if (lines.rejected > 0) {
    unreadable_.Increment(static_cast<double>(lines.rejected));
    options_.log.Limited(log::Level::kWarn, "a line of StatsD is left out",
                         {{"why", lines.problem}});
  }
  if (lines.points.empty()) return;
  const StatsdSums::Added added = sums_.Add(lines.points, options_.monotonic());
  values_.Increment(static_cast<double>(added.values));
  no_room_.Increment(static_cast<double>(added.no_room));
  other_type_.Increment(static_cast<double>(added.other_type));
}

void StatsdDoor::Flush() {
  if (!options_.intake->CheckOpen().ok() || writing_.exchange(true)) return;
  Write();
}

void StatsdDoor::Write() {
  const ForeignWrite write = sums_.Flush(options_.monotonic(), absl::ToUnixNanos(options_.now()));
  series_.Set(static_cast<double>(sums_.size()));
  options_.intake->Write(
      write, {"statsd", {}, security::Rights::Everything()},
      [this, samples = write.samples.size()](const WriteOutcome& outcome) {
        samples_.Increment(static_cast<double>(outcome.stored));
        not_stored_.Increment(static_cast<double>(outcome.status.ok() ? outcome.refused : samples));
        if (!outcome.status.ok() || outcome.refused > 0) {
          options_.log.Limited(log::Level::kWarn, "samples of StatsD are not stored",
                               {{"why", outcome.status.ok() ? absl::string_view(outcome.refusal)
                                                            : outcome.status.message()}});
        }
        writing_ = false;
      });
}

}  // namespace tacho::server::interop
