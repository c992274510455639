// A Recorder that sends to a collector over gRPC, for hosts without an agent.
//
//   auto recorder = tacho::client::OpenDirect({.recorder = {.job = "resnet"},
//                                              .collector = "collector:7411"});
//
// It works as in client/recorder.h, with these differences:
//   - the process has a connection and more threads: one of the library and some of gRPC;
//   - a row goes into a bounded queue: recording allocates, and takes a lock that is never held for
//     long. Without a collector the queue fills and drops the oldest rows and events; an event
//     rows_lost has their number once a collector is reachable again;
//   - what was not acknowledged is lost when the process dies. A normal exit waits for the
//     collector, at most flush_timeout.
//
// While this process lives, each row is stored exactly once, however often the connection breaks or
// the collector restarts. Retries have growing pauses with jitter.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/channel/channel_security.h"
#include "client/recorder.h"

namespace tacho::client {

struct DirectOptions {
  // Job, task, attempt, clocks, environment; options about rings have no effect.
  RecorderOptions recorder = {};
  // HOST:PORT; else TACHO_COLLECTOR. Without one, nothing is recorded.
  std::string collector = {};
  // TLS, certificates, token; the files are read again whenever the collector refuses them.
  ChannelSecurity security = {};
  // The name of the machine in rows. Default: the system's host name.
  std::string host = {};
  // Memory for rows and events that wait for the collector; at least 64 KiB. Another 2 MiB may be
  // in flight.
  uint64_t queue_bytes = uint64_t{16} * 1024 * 1024;
  // How long the end waits until everything is durable.
  absl::Duration flush_timeout = absl::Seconds(5);
};

// Never fails, as Recorder::Open(). Does not wait for the collector, which need not exist yet.
Recorder OpenDirect(const DirectOptions& options) noexcept;

}  // namespace tacho::client
