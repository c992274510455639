// How gRPC handles the bytes of many connections, most of which say little.
#pragma once

#include "grpcpp/server_builder.h"

namespace tacho::server::process {

// What a connection may cost while it is idle or sends a row a second: no pings of the transport's
// own, and no read buffer above 8 KiB.
void TuneTransport(grpc::ServerBuilder* builder);

}  // namespace tacho::server::process
