// The agent: sources -> spool (disk) -> stream to the collector; in a cluster a spool and a stream
// for each shard. Threads of its own: one for each source, and one for each stream.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/delivery.h"
#include "agent/sampler.h"
#include "agent/spool/spool_stats.h"
#include "client/environment_identity.h"
#include "proto/base/log.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct AgentOptions {
  config::v1::Agent config;  // As tacho::config::ParseYaml gives it: with all defaults.
  std::string version;       // For the collector and the log.
  // Where the agent's own environment is looked at, getenv() but in tests; null: it has none.
  client::EnvironmentGetter environment;
  log::Log log;
  // How long stopping may take to deliver what is spooled; the rest waits for the next start.
  absl::Duration flush = absl::Seconds(5);
  // The agent cannot go on, and should be stopped and started again. Called once, on a thread of
  // the agent's; may be null.
  std::function<void(const absl::Status&)> broken;
};

// Start() and Stop() are for one thread, once each.
class Agent {
 public:
  // Opens the spool and makes the sources; nothing runs yet.
  //   INVALID_ARGUMENT  a value of the configuration; the text names the key.
  //   others            as of Delivery::Open().
  static absl::StatusOr<std::unique_ptr<Agent>> Create(AgentOptions options);
  ~Agent();

  void Start();
  // Samples a last time, syncs the spool, delivers what it can.
  void Stop();

  SpoolStats spool_stats() const { return delivery_->Stats(); }

 private:
  Agent() = default;

  log::Log log_;
  absl::Duration flush_;
  // In the order of their making; each uses those above.
  std::unique_ptr<Delivery> delivery_;
  std::unique_ptr<Sampler> sampler_;
};

}  // namespace tacho::agent
