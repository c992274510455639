// The transport of agents: gRPC's channels and one completion queue.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/stream/transport.h"
#include "agent/stream/wake_up.h"
#include "grpcpp/completion_queue.h"

namespace tacho::agent {

class GrpcTransport final : public Transport {
 public:
  // Each call has a channel of its own: a channel that is kept would pause between attempts by
  // rules of its own, beside ours.
  absl::StatusOr<std::unique_ptr<DialledStream>> Dial(
      const std::string& address, const client::ChannelSecurity& security) override;
  std::optional<Event> Next(absl::Time until) override;
  void Ring() override { wake_up_.Ring(); }
  void Shutdown() override;

 private:
  grpc::CompletionQueue queue_;
  WakeUp wake_up_{&queue_};
};

}  // namespace tacho::agent
