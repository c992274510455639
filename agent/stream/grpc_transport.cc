#include "agent/stream/grpc_transport.h"

#include <algorithm>
#include <utility>

#include "agent/stream/collector_config.h"
#include "client/channel/stream_arguments.h"
#include "grpc/support/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

// tacho/v1/ingest.proto's Ingest.Stream.
constexpr char kMethod[] = "/tacho.v1.Ingest/Stream";
constexpr int kConnectTimeoutMs = 10'000;

gpr_timespec Deadline(absl::Time until) {
  if (until == absl::InfiniteFuture()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  if (until == absl::InfinitePast()) return gpr_inf_past(GPR_CLOCK_MONOTONIC);
  const absl::Duration wait = std::max(until - MonotonicNow(), absl::ZeroDuration());
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(absl::ToInt64Microseconds(wait) + 1, GPR_TIMESPAN));
}

class GrpcStream final : public DialledStream {
 public:
  // The queue is not owned; it must outlive the stream.
  GrpcStream(const std::string& address, const client::SecuredChannel& secured,
             const grpc::ChannelArguments& arguments, grpc::CompletionQueue* queue)
      : stub_(grpc::CreateCustomChannel(address, secured.credentials, arguments)) {
    if (!secured.authorization.empty()) {
      context_.AddMetadata("authorization", secured.authorization);
    }
    stream_ = stub_.PrepareCall(&context_, kMethod, queue);
  }

  Stream* stream() override { return stream_.get(); }
  void Cancel() override { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  grpc::TemplatedGenericStub<grpc::ByteBuffer, v1::ServerMessage> stub_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DialledStream>> GrpcTransport::Dial(
    const std::string& address, const client::ChannelSecurity& security) {
  grpc::ChannelArguments arguments = client::StreamArguments(kConnectTimeoutMs);
  TACHO_ASSIGN_OR_RETURN(const auto secured,
                         client::SecureChannel(security, address, kSecurityKeys, &arguments));
  return std::make_unique<GrpcStream>(address, secured, arguments, &queue_);
}

std::optional<Transport::Event> GrpcTransport::Next(absl::Time until) {
  Event event;
  if (queue_.AsyncNext(&event.tag, &event.ok, Deadline(until)) !=
      grpc::CompletionQueue::GOT_EVENT) {
    return std::nullopt;
  }
  if (event.tag == wake_up_.tag()) {
    wake_up_.Answer();
    event.tag = nullptr;
  }
  return event;
}

void GrpcTransport::Shutdown() {
  wake_up_.Close();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

}  // namespace tacho::agent
