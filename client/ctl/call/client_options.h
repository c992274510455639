// How a client reaches one collector.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "client/channel/channel_security.h"

namespace tacho::ctl {

struct ClientOptions {
  std::string address;  // HOST:PORT or what else gRPC resolves.
  // How long the collector may take to answer, or to go on with a streamed answer.
  absl::Duration timeout = absl::Seconds(30);
  client::ChannelSecurity security;
};

// The flags that set ChannelSecurity.
extern const client::ChannelSecurityNames kSecurityFlags;

}  // namespace tacho::ctl
