// What all parts of a simulated network share: its options, its dice, who listens, what is cut off.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tests/simulate/transport/timeline.h"

namespace tacho::simulate {

class SimLink;

// When an end gives up a connection over which nothing comes.
struct SilenceLimits {
  absl::Duration ping_every;  // The other end is heard from at least so often.
  absl::Duration silence;     // Since it was heard from last.
  absl::Duration unanswered;  // Since bytes were sent that it does not acknowledge.
};

struct SimNetworkOptions {
  uint64_t seed = 1;  // Of latencies and of what a cut loses.
  // What a packet takes, one way.
  absl::Duration latency_min = absl::Microseconds(100);
  absl::Duration latency_max = absl::Milliseconds(1);
  uint64_t bytes_per_second = 0;       // Of a stream, each way; 0: no bound.
  uint64_t window_bytes = 256u << 10;  // A writer waits while its reader has so much to read.
  // client/channel/stream_arguments.cc: pings, and TCP's user timeout, which gRPC sets to the time
  // that a ping may take.
  SilenceLimits agent = {absl::Seconds(30), absl::Seconds(40), absl::Seconds(10)};
  // server/edge/listener.cc.
  SilenceLimits server = {absl::Seconds(10), absl::Seconds(20), absl::Seconds(20)};
};

// Where streams come in. Needs the network's mutex.
struct Door {
  Timeline timeline;  // Of all streams of this address.
  std::function<void(const std::shared_ptr<SimLink>&)> open;
  bool closed = false;
};

// An agent's process. Needs the network's mutex.
struct SimProcess {
  std::string host;
  bool dead = false;
};

// The mutex guards all that follows it, and all links. Nobody calls out while holding it; a
// reactor's lock may be held when it is taken.
struct NetworkState {
  explicit NetworkState(const SimNetworkOptions& the_options)
      : options(the_options), random(the_options.seed) {}

  const SimNetworkOptions options;
  absl::Mutex mutex;
  std::mt19937_64 random;
  std::map<std::string, std::shared_ptr<Door>> doors;  // By address.
  std::vector<std::weak_ptr<SimLink>> links;           // In the order of their making.
  std::vector<std::weak_ptr<SimProcess>> processes;
  std::set<std::pair<std::string, std::string>> partitions;
  std::map<std::string, uint64_t> bytes_to_cut;  // By endpoint: how many more may pass.
  uint64_t cuts = 0;

  // The rest needs the mutex.

  uint64_t Draw(uint64_t most) {  // 0..most.
    return std::uniform_int_distribution<uint64_t>(0, most)(random);
  }
  absl::Duration Draw(absl::Duration least, absl::Duration most) {
    if (most <= least) return least;
    const auto width = static_cast<uint64_t>(absl::ToInt64Nanoseconds(most - least));
    return least + absl::Nanoseconds(static_cast<int64_t>(Draw(width)));
  }
  absl::Duration Latency() { return Draw(options.latency_min, options.latency_max); }
  absl::Duration TimeOnWire(uint64_t bytes) const {
    if (options.bytes_per_second == 0) return absl::ZeroDuration();
    return absl::Seconds(1) *
           (static_cast<double>(bytes) / static_cast<double>(options.bytes_per_second));
  }
  bool IsPartitioned(const std::string& a, const std::string& b) const {
    return partitions.count(std::minmax(a, b)) > 0;
  }
  // How many of the next `bytes` pass between the two; fewer than all if the connection is to be
  // cut among them.
  uint64_t Pass(const std::string& a, const std::string& b, uint64_t bytes) {
    uint64_t passing = bytes;
    for (const std::string& endpoint : {a, b}) {
      const auto left = bytes_to_cut.find(endpoint);
      if (left == bytes_to_cut.end()) continue;
      if (left->second < bytes) {
        passing = std::min(passing, left->second);
        bytes_to_cut.erase(left);
      } else {
        left->second -= bytes;
      }
    }
    return passing;
  }
};

}  // namespace tacho::simulate
