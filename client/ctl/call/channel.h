// The connection to one collector.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/channel/channel_security.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"

namespace tacho::ctl {

// How a client reaches one collector.
struct ClientOptions {
  std::string address;  // HOST:PORT, or another name that gRPC resolves.
  // How long the collector may take to answer, or to continue a streamed answer.
  absl::Duration timeout = absl::Seconds(30);
  client::ChannelSecurity security;
};

// The flags that set ChannelSecurity.
extern const client::ChannelSecurityNames kSecurityFlags;

// Whether a collector ended the call, rather than the connection to it.
bool CameFromPeer(const grpc::Status& status, grpc::Channel* channel);

// Not thread-safe.
class Channel {
 public:
  explicit Channel(const ClientOptions& options);

  // Why there is no connection, as client::SecureChannel() says it; OK otherwise.
  const absl::Status& status() const { return status_; }
  // Never null; without a connection every call on it fails.
  const std::shared_ptr<grpc::Channel>& grpc() const { return channel_; }
  // Called for every call: adds the token.
  void Prepare(grpc::ClientContext* context) const;

 private:
  absl::Status status_;
  std::string authorization_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace tacho::ctl
