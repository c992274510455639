// The way to one collector.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/channel/channel_security.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"

namespace tacho::ctl {

struct ClientOptions {
  std::string address;  // HOST:PORT or what else gRPC resolves.
  // How long the collector may take to answer, or to go on with a streamed answer.
  absl::Duration timeout = absl::Seconds(30);
  client::ChannelSecurity security;
};

// The flags that set ChannelSecurity.
extern const client::ChannelSecurityNames kSecurityFlags;

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
