// An agent's way to collectors over a simulated network.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/stream/transport.h"
#include "tests/simulate/transport/network_state.h"

namespace tacho::simulate {

// What has happened to an agent's streams and was not looked at. Needs the network's mutex.
struct SimDesk {
  Timeline timeline;
  std::deque<agent::Transport::Event> events;
  bool ringing = false;
  bool shut = false;

  void Put(agent::Transport::Event event) {
    events.push_back(event);
    timeline.Wake();
  }
};

class SimTransport final : public agent::Transport {
 public:
  SimTransport(std::shared_ptr<NetworkState> network, std::shared_ptr<SimProcess> process);
  ~SimTransport() override;

  // Never fails: a simulated network has no credentials.
  absl::StatusOr<std::unique_ptr<agent::DialledStream>> Dial(
      const std::string& address, const client::ChannelSecurity& security) override;
  std::optional<Event> Next(absl::Time until) override;
  void Ring() override;
  void Shutdown() override;

 private:
  const std::shared_ptr<NetworkState> network_;
  const std::shared_ptr<SimProcess> process_;
  const std::shared_ptr<SimDesk> desk_;
};

}  // namespace tacho::simulate
