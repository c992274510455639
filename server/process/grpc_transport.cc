#include "server/process/grpc_transport.h"

#include <climits>

#include "grpc/impl/codegen/grpc_types.h"

namespace tacho::server::process {
namespace {

// gRPC guesses how much comes next from what came before: a layout of 6 KiB makes it allocate 64
// KiB for the rows behind it, which it fills one after the other and keeps. Up to this it
// allocates 8.
constexpr int kMaxReadBytes = 8 << 10;

}  // namespace

void TuneTransport(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadBytes);
  // The probe widens the flow control window of a fast and distant peer, by a ping each time that
  // something comes: a write, a read and a timer more than the message itself needs. The 64 KiB
  // that it leaves carry a thousand rows a second over 50 ms, and bound what a peer can make us and
  // the kernel hold.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // A host that vanished is found by TCP (door/listener.cc). gRPC's own pings would set a timer
  // anew for every read, which costs more with every connection: Debian's build checks each timer
  // against the others.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
}

}  // namespace tacho::server::process
