// How a channel that carries one long stream to a collector behaves.
#pragma once

#include "grpcpp/support/channel_arguments.h"

namespace tacho::client {

// A channel of its own for each stream, without retries: the caller decides when to try again. A
// path that is dead without a word is noticed after 25 s, not when TCP gives up.
grpc::ChannelArguments StreamArguments(int connect_timeout_ms);

}  // namespace tacho::client
