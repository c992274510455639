// The way to one collector.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/ctl/call/client_options.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"

namespace tacho::ctl {

// Whether a call's end came from a collector rather than from the way there.
bool CameFromPeer(const grpc::Status& status, grpc::Channel* channel);

// Not thread-safe.
class Channel {
 public:
  explicit Channel(const ClientOptions& options);

  // Why there is no way: as client::SecureChannel().
  const absl::Status& status() const { return status_; }
  // Not null; without a way every call on it fails.
  const std::shared_ptr<grpc::Channel>& grpc() const { return channel_; }
  // For every call: shows who calls.
  void Prepare(grpc::ClientContext* context) const;

 private:
  absl::Status status_;
  std::string authorization_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace tacho::ctl
