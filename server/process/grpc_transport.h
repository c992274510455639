// How the collector uses gRPC: the limits of its server, and gRPC's own log.
#pragma once

#include <cstdint>

#include "proto/base/log.h"
#include "tacho/config/v1/collector.pb.h"

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace tacho::server::process {

// Sends gRPC's own lines to `log`, with its limit on lines that others can cause: any peer can fail
// a handshake or break a frame at will. gRPC has one log for the whole process: call this once,
// from main, before using gRPC.
void LimitGrpcLog(const log::Log& log);

// The largest message that gRPC reads, where ingest.max_message_bytes is `max_message_bytes`. A
// message between the two is read, so that its sender can be told the limit; it is not parsed.
constexpr uint64_t LargestRead(uint64_t max_message_bytes) {
  return max_message_bytes + (uint64_t{4} << 20);
}

// Bounds what the clients of a server can make gRPC hold and do: sizes, pings, streams, memory, and
// the time to shake hands. Call it before the builder starts the server.
void ConfigureGrpc(const config::v1::Collector::Ingest& limits, const config::v1::Quotas& quotas,
                   grpc::ServerBuilder* builder);

}  // namespace tacho::server::process
