// StatsD and DogStatsD over UDP and TCP. One thread reads all sockets and adds up what comes; a
// second one stores the sums at each interval. Senders have no credentials and get no answer.
//
//   datagram, line of TCP -> ReadStatsdLines() -> StatsdSums -> each interval: Intake::Write()
//
// While a write is on its way no other begins, and nothing is written while the collector drains or
// has no memory: what comes meanwhile is added up until it can be stored.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "proto/base/background_thread.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "server/interop/intake.h"
#include "server/interop/statsd_sums.h"

namespace tacho::server::interop {

struct StatsdDoorOptions {
  Intake* intake = nullptr;  // Not owned.
  std::string address;       // "127.0.0.1:8125", for UDP and TCP.
  absl::Duration interval = absl::Seconds(10);
  StatsdSumsOptions sums;
  prometheus::Registry* registry = nullptr;  // Not owned.
  std::function<absl::Time()> now = absl::Now;
  std::function<absl::Time()> monotonic = MonotonicNow;
  log::Log log;
};

// Open(), Stop() and destruction are for one thread. Must outlive the store, which calls it.
class StatsdDoor {
 public:
  // A connection of TCP whose line is longer is closed. A datagram of UDP cannot be longer.
  static constexpr size_t kMaxLineBytes = 65'536;
  // More are closed at once: a trainer host has some processes.
  static constexpr size_t kMaxConnections = 256;

  // Reads from now on.
  //   UNAVAILABLE  the address is unknown or taken; the text says which.
  static absl::StatusOr<std::unique_ptr<StatsdDoor>> Open(StatsdDoorOptions options);
  ~StatsdDoor();

  int port() const { return port_; }
  // Adds up lines, as if a datagram had them.
  void Take(absl::string_view lines);
  // Stores the sums, unless a write is on its way.
  void Flush();
  // Reads no more, and stores what there is. May be called again.
  void Stop();

 private:
  struct Connection {
    int fd = -1;
    std::string begun;  // A line without its end.
  };

  explicit StatsdDoor(StatsdDoorOptions options);
  absl::Status Bind();
  void Read();
  void ReadDatagrams();
  void Accept();
  // Other members of the cluster have the last write: this gives them time.
  void AwaitWrite() const;
  // False: the connection has ended.
  bool ReadConnection(Connection* connection);
  void Write();
  prometheus::Counter& Dropped(const char* reason) const;

  const StatsdDoorOptions options_;
  StatsdSums sums_;
  int datagrams_ = -1;
  int listening_ = -1;
  int stop_pipe_[2] = {-1, -1};
  int port_ = 0;
  uint32_t kernel_dropped_ = 0;  // As the kernel counts.
  std::vector<Connection> connections_;
  std::vector<char> buffer_;
  std::thread reader_;
  RepeatingThread flusher_;
  std::atomic<bool> writing_ = false;

  prometheus::Counter& samples_;
  prometheus::Counter& values_;
  prometheus::Gauge& series_;
  prometheus::Counter& by_kernel_;
  prometheus::Counter& by_connection_;
  prometheus::Counter& unreadable_;
  prometheus::Counter& events_;
  prometheus::Counter& service_checks_;
  prometheus::Counter& no_room_;
  prometheus::Counter& other_type_;
  prometheus::Counter& not_stored_;
};

}  // namespace tacho::server::interop
