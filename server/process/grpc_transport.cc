#include "server/process/grpc_transport.h"

#include <grpc/support/log.h>

#include <climits>

#include "absl/time/time.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"

namespace tacho::server::process {
namespace {

// Agents ping about every 15 s to keep their connection through idle times and middle boxes; gRPC's
// default would take more than one ping in 5 minutes for an attack and hang up.
constexpr int kMinPingIntervalMs = 10'000;
// An agent needs one stream and a person a few queries; a proxy that folds many into one connection
// opens another.
constexpr int kMaxStreamsPerConnection = 100;
// A connection without a call is closed then; a client that comes back later connects again.
constexpr int kMaxIdleMs = 300'000;
// Headers of one call: a token of ours has a few hundred bytes.
constexpr int kMaxHeaderBytes = 8 << 10;
// Ceiling for gRPC's buffers; past it flow control tightens instead of memory growing. Takes 20,000
// connections at the 75 KiB that one was measured to cost.
constexpr size_t kGrpcMemoryBytes = 1536u << 20;
// gRPC guesses how much comes next from what came before: after a layout of 6 KiB it allocates 64
// KiB for the rows behind it, fills them one after the other, and keeps them. Up to this it
// allocates 8.
constexpr int kMaxReadBytes = 8 << 10;

const log::Log* g_log = nullptr;  // gRPC's function takes no argument of ours.

}  // namespace

void LimitGrpcLog(const log::Log& log) {
  g_log = new log::Log(log);
  gpr_set_log_function([](gpr_log_func_args* line) {
    g_log->Limited(log::Level::kWarn, "gRPC", {{"text", line->message}});
  });
}

void ConfigureGrpc(const config::v1::Collector::Ingest& limits, const config::v1::Quotas& quotas,
                   grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(LargestRead(limits.max_message_bytes())));
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kMinPingIntervalMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadBytes);
  // The probe widens the flow control window of a fast and distant peer, by a ping for each read: a
  // write, a read and a timer more than the message itself needs. Without it the window is 64 KiB,
  // which carries a thousand rows a second over 50 ms and limits what a peer can make us and the
  // kernel hold.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // TCP finds a host that vanished (edge/listener.cc). gRPC's own pings would set a timer for every
  // read, which costs more with every connection: Debian's build checks each timer against the
  // others.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
  // 1.51 unpacks a message whole before it looks at its size. The doors for OpenTelemetry, whose
  // senders compress with gzip, unpack it themselves; errors/packed_calls.h refuses it elsewhere.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxHeaderBytes);
  // A connection without TLS or HTTP/2 settings by then is closed.
  builder->AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      static_cast<int>(absl::ToInt64Milliseconds(absl::Nanoseconds(quotas.hello_timeout()))));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  builder->SetResourceQuota(grpc::ResourceQuota("tacho-collector").Resize(kGrpcMemoryBytes));
}

}  // namespace tacho::server::process
