// A Recorder that sends what it takes to a collector over gRPC, where no agent runs.
//
//   auto recorder = tacho::client::OpenDirect({.recorder = {.job = "resnet"},
//                                              .collector = "collector:7411"});
//
// All else is as in client/recorder.h, with these differences:
//   - the process has threads and a connection: one of ours and some of gRPC's;
//   - a row goes into a bounded queue: recording takes a lock that is never held for long, and
//     allocates. Without a collector the queue fills, and then the oldest rows and events are
//     dropped; how many becomes an event rows_lost once a collector is there again;
//   - what was not acknowledged when the process dies is lost. The end of a proper exit waits for
//     the collector, at most flush_timeout.
//
// Each row is stored once, however often the connection breaks and the collector restarts, as long
// as this process lives. A lost connection is tried again with growing, jittered pauses.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/channel/channel_security.h"
#include "client/recorder.h"

namespace tacho::client {

struct DirectOptions {
  // Job, task, attempt, clocks, environment; what is said of rings there means nothing here.
  RecorderOptions recorder = {};
  // HOST:PORT; TACHO_COLLECTOR. Without one nothing is recorded.
  std::string collector = {};
  // TLS, certificates, token; the files are read again whenever the collector refuses.
  ChannelSecurity security = {};
  // The machine, as rows name it; the system's host name.
  std::string host = {};
  // Of rows and events that wait for the collector; at least 64 KiB. 2 MiB more may be on their
  // way.
  uint64_t queue_bytes = uint64_t{16} * 1024 * 1024;
  // How long the end may wait until all is durable.
  absl::Duration flush_timeout = absl::Seconds(5);
};

// Never fails, as Recorder::Open(): does not wait for the collector, nor need it be there.
Recorder OpenDirect(const DirectOptions& options) noexcept;

}  // namespace tacho::client
