#include "agent/stream/ingest_call.h"

#include <utility>

#include "agent/stream/collector_config.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/slice.h"
#include "proto/base/check.h"

namespace tacho::agent {
namespace {

// tacho/v1/ingest.proto's Ingest.Stream.
constexpr char kMethod[] = "/tacho.v1.Ingest/Stream";
constexpr int kConnectTimeoutMs = 10'000;
// A path that is dead without a word is noticed after 40 s, not when TCP gives up.
constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A service configuration from DNS could bring retries, and the look-up costs a query.
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return arguments;
}

// Bytes of a message, which gRPC keeps until it has sent them.
grpc::Slice SliceOf(absl::string_view bytes, std::unique_ptr<SpooledMessage> message) {
  // gRPC does not write to a slice that it sends.
  return {const_cast<char*>(bytes.data()), bytes.size(),  // NOLINT(*-const-cast)
          [](void* kept) { delete static_cast<SpooledMessage*>(kept); }, message.release()};
}

}  // namespace

IngestCall::IngestCall(const std::string& address, const client::ChannelSecurity& security,
                       grpc::CompletionQueue* queue) {
  Dial(address, security, queue);
}

void IngestCall::Dial(const std::string& address, const client::ChannelSecurity& security,
                      grpc::CompletionQueue* queue) {
  grpc::ChannelArguments arguments = Arguments();
  const auto secured = client::SecureChannel(security, address, kSecurityKeys, &arguments);
  if (!secured.ok()) {
    status_ = {grpc::StatusCode::FAILED_PRECONDITION, std::string(secured.status().message())};
    finishing_ = true;
    finish_.pending = true;
    not_dialled_.Set(queue, gpr_inf_past(GPR_CLOCK_MONOTONIC), &finish_);
    return;
  }
  if (!secured->authorization.empty()) {
    context_.AddMetadata("authorization", secured->authorization);
  }
  stub_ = std::make_unique<grpc::TemplatedGenericStub<grpc::ByteBuffer, v1::ServerMessage>>(
      grpc::CreateCustomChannel(address, secured->credentials, arguments));
  stream_ = stub_->PrepareCall(&context_, kMethod, queue);
  start_.pending = true;
  stream_->StartCall(&start_);
}

IngestCall::Progress IngestCall::Handle(Tag* tag, bool ok) {
  TACHO_CHECK(tag->call == this && tag->pending);
  tag->pending = false;
  switch (tag->operation) {
    case Tag::Operation::kStart:
      started_ = ok;
      if (!ok) {
        Finish();
        return Progress::kNone;
      }
      ReadNext();
      return Progress::kReadyToWrite;
    case Tag::Operation::kRead:
      if (ok) return Progress::kReceived;
      Finish();
      return Progress::kNone;
    case Tag::Operation::kWrite:
      // After a failed write the read fails as well, and brings the status.
      return ok && can_write() ? Progress::kReadyToWrite : Progress::kNone;
    case Tag::Operation::kHalfClose:
      return Progress::kNone;
    case Tag::Operation::kFinish:
      finished_ = true;
      return Progress::kFinished;
  }
  return Progress::kNone;
}

void IngestCall::Write(const v1::ClientMessage& message) {
  const grpc::Slice slice(message.SerializeAsString());
  WriteBytes(grpc::ByteBuffer(&slice, 1));
}

void IngestCall::Write(SpooledMessage message) {
  auto kept = std::make_unique<SpooledMessage>(std::move(message));
  const absl::string_view bytes = kept->bytes();
  const grpc::Slice slice = SliceOf(bytes, std::move(kept));
  WriteBytes(grpc::ByteBuffer(&slice, 1));
}

void IngestCall::WriteBatch(SpooledMessage batch, uint32_t layout) {
  auto kept = std::make_unique<SpooledMessage>(std::move(batch));
  const SpooledMessage::Parts parts = kept->WithLayout(layout);
  const grpc::Slice slices[] = {grpc::Slice(parts.head), SliceOf(parts.tail, std::move(kept))};
  WriteBytes(grpc::ByteBuffer(slices, 2));
}

void IngestCall::WriteBytes(const grpc::ByteBuffer& bytes) {
  TACHO_CHECK(can_write());  // gRPC takes one message at a time.
  write_.pending = true;
  stream_->Write(bytes, &write_);
}

void IngestCall::ReadNext() {
  TACHO_CHECK(started_ && !read_.pending);
  read_.pending = true;
  stream_->Read(&received_, &read_);
}

void IngestCall::HalfClose() {
  TACHO_CHECK(can_write());
  half_closed_ = true;
  half_close_.pending = true;
  stream_->WritesDone(&half_close_);
}

void IngestCall::Finish() {
  if (finishing_) return;
  finishing_ = true;
  finish_.pending = true;
  stream_->Finish(&status_, &finish_);
}

bool IngestCall::done() const {
  return finished_ && !start_.pending && !read_.pending && !write_.pending && !half_close_.pending;
}

}  // namespace tacho::agent
