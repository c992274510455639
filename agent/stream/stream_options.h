// The settings of the stream to the collector.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agent/stream/acknowledged.h"
#include "agent/stream/clock_reports.h"
#include "agent/stream/lanes.h"
#include "agent/stream/refused_totals.h"
#include "agent/stream/request_taker.h"
#include "agent/stream/transport.h"
#include "client/channel/channel_security.h"
#include "proto/base/log.h"

namespace tacho::agent {

struct StreamOptions {
  std::vector<std::string> addresses;  // "host:port" of each collector, the best first.
  // In a cluster: the number of its members, and the shard of the member that this stream leads to.
  // 0 shards: no cluster.
  uint32_t shards = 0;
  uint32_t shard = 0;
  // Behind all addresses is one store, whose owner may move from one to another (cluster.spares).
  // So what one of them has acknowledged the next one has, and there is none to return to.
  bool one_store = false;
  client::ChannelSecurity security;  // For the way to each of them.
  std::string agent_id;              // Unique in the fleet.
  // Facts for each Hello, as known by then: at most 32. Called on the sender's thread; may be
  // null.
  std::function<std::vector<std::pair<std::string, std::string>>()> labels;
  std::string version;  // Sent in Hello.
  absl::Duration backoff_min = absl::Milliseconds(500);
  absl::Duration backoff_max = absl::Seconds(30);
  // An earlier collector of the list is tried again when a later one has worked for so long, or up
  // to half as much again.
  absl::Duration return_after = absl::Minutes(10);
  uint32_t backlog_rows_per_second = 0;  // 0: no bound.
  LaneOptions lanes;
  // The spool is synced at most so often. It is what a crash of the machine may take, and how long
  // a row may wait before it is sent.
  absl::Duration sync_interval = absl::Seconds(1);
  absl::Duration welcome_timeout = absl::Seconds(20);  // For connecting and the answer to Hello.
  std::function<absl::Time()> now = absl::Now;         // For the clock comparison only.
  std::function<double()> random;                      // In [0, 1), for jitter; null is the usual.
  // How collectors are reached; null: by gRPC. Called once, when the sender is made.
  std::function<std::unique_ptr<Transport>()> transport;
  log::Log log;
  std::shared_ptr<RefusedTotals> refused;  // Counts what is refused; may be null.
  // Counts what collectors have lost after they had acknowledged it; may be null.
  std::shared_ptr<MissingTotals> missing;
  std::shared_ptr<ClockOffset> clock;  // Is told how far this host's clock is off; may be null.
  // Answers what the collector asks; null: nothing is answered.
  std::shared_ptr<RequestTaker> requests;
  // The spool is damaged as a whole; it must be opened anew. Called on the sender's thread; may be
  // null.
  std::function<void(const absl::Status&)> broken;

  // To which this agent sends over this stream or another: a line of the log for each.
  int collectors() const { return static_cast<int>(std::max<size_t>(addresses.size(), shards)); }
};

}  // namespace tacho::agent
