#include "server/ingest/agent_stream.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "server/grpc_status.h"

namespace tacho::server {
namespace {

// Holds a message of some hundred values, so that parsing it allocates nothing.
constexpr size_t kArenaBytes = 16 << 10;

// How long agents are asked to stay away: long enough for a restart, and spread by stream so that a
// fleet does not come back in one moment.
absl::Duration RetryAfter(uint64_t stream) {
  constexpr uint64_t kSpreadMs = 2000;
  return absl::Milliseconds(1000 + static_cast<int64_t>(stream * 977 % kSpreadMs));
}

grpc::Status ToPeer(const absl::Status& status, uint64_t stream) {
  if (!absl::IsUnavailable(status)) return ToGrpcStatus(status);
  return ToGrpcStatus(status, RetryAfter(stream));
}

bool Parse(grpc::ByteBuffer* bytes, v1::ClientMessage* message) {
  grpc::ProtoBufferReader reader(bytes);
  return reader.status().ok() && message->ParseFromZeroCopyStream(&reader);
}

}  // namespace

AgentStream::AgentStream(const StreamContext* context, uint64_t stream)
    : context_(*context), stream_(stream) {}

std::shared_ptr<AgentStream> AgentStream::Start(const StreamContext* context, uint64_t stream) {
  std::shared_ptr<AgentStream> reactor(new AgentStream(context, stream));
  reactor->self_ = reactor;
  const std::weak_ptr<AgentStream> weak = reactor;
  AckCoalescer::Options options;
  options.store = context->session.store;
  options.total_pending = context->total_pending;
  options.now = context->session.now;
  options.wake = [weak, pacer = context->pacer] {
    if (auto live = weak.lock()) pacer->Schedule(std::move(live));
  };
  reactor->acks_ = std::make_shared<AckCoalescer>(std::move(options));
  const auto evict = [weak] {
    if (const auto live = weak.lock()) {
      live->End(absl::UnavailableError("a newer stream of this agent took over"));
    }
  };
  reactor->session_ =
      std::make_unique<StreamSession>(&context->session, reactor->acks_, stream, evict);
  reactor->StartRead(&reactor->read_buffer_);
  return reactor;
}

void AgentStream::End(absl::Status status) {
  {
    absl::MutexLock lock(&mutex_);
    if (!end_.has_value()) end_ = std::move(status);
  }
  Advance();
}

void AgentStream::OnReadDone(bool ok) {
  if (!ok) return End(absl::OkStatus());  // The agent is done sending, or the stream broke.
  if (IsEnding()) return;                 // Not accepted, so it will be sent again.
  if (absl::Status status = Receive(); !status.ok()) return End(std::move(status));
  ReadOn();
}

bool AgentStream::IsEnding() {
  absl::MutexLock lock(&mutex_);
  return end_.has_value() || finished_;
}

absl::Status AgentStream::Receive() {
  alignas(8) char block[kArenaBytes];
  google::protobuf::ArenaOptions options;
  options.initial_block = block;
  options.initial_block_size = sizeof(block);
  google::protobuf::Arena arena(options);
  auto* message = google::protobuf::Arena::CreateMessage<v1::ClientMessage>(&arena);
  const bool parsed = Parse(&read_buffer_, message);
  read_buffer_.Clear();
  if (!parsed) return context_.session.admission->RefuseEncoding();

  auto welcome = session_->Handle(*message);
  if (!welcome.ok()) return welcome.status();
  if (!welcome->has_value()) return absl::OkStatus();
  {
    absl::MutexLock lock(&mutex_);
    welcome_ = std::move(*welcome);
  }
  Advance();
  return absl::OkStatus();
}

bool AgentStream::MayRead(uint64_t pending_bytes) const {
  if (pending_bytes == 0) return true;
  return pending_bytes <= context_.max_stream_pending_bytes &&
         context_.total_pending->load(std::memory_order_relaxed) <=
             context_.max_total_pending_bytes;
}

void AgentStream::ReadOn() {
  if (MayRead(acks_->pending_bytes())) {
    StartRead(&read_buffer_);
    return;
  }
  context_.session.metrics->StreamThrottled(Throttling::kFlowControl);
  {
    absl::MutexLock lock(&mutex_);
    read_waits_ = true;
  }
  Advance();  // The disk may have caught up in between.
}

void AgentStream::Advance() {
  Step step = Step::kNone;
  v1::ServerMessage message;
  absl::Status end;
  {
    absl::MutexLock lock(&mutex_);
    if (finished_ || writing_ || starting_read_) return;
    const AckCoalescer::State acks = acks_->Look();
    if (!acks.failure.ok() && !end_.has_value()) end_ = StoreFailure(acks.failure);
    step = NextStep(acks);
    if (step == Step::kWelcome) {
      *message.mutable_welcome() = *std::exchange(welcome_, std::nullopt);
    }
    if (step == Step::kFinish) end = broken_ ? absl::CancelledError("connection lost") : *end_;
  }
  switch (step) {
    case Step::kNone:
      return;
    case Step::kWelcome:
      return Write(message);
    case Step::kAck:
      *message.mutable_ack() = acks_->TakeAck();
      context_.session.metrics->AckSent();
      return Write(message);
    case Step::kRead:
      return ReadAgain();
    case Step::kFinish:
      return FinishWith(end);
  }
}

AgentStream::Step AgentStream::NextStep(const AckCoalescer::State& acks) {
  if (end_.has_value() &&
      (broken_ || (acks.pending_messages == 0 && !acks.ack_due && !welcome_.has_value()))) {
    finished_ = true;
    return Step::kFinish;
  }
  if (!end_.has_value() && read_waits_ && MayRead(acks.pending_bytes)) {
    read_waits_ = false;
    starting_read_ = true;
    return Step::kRead;
  }
  if (broken_ || (!welcome_.has_value() && !acks.ack_due)) return Step::kNone;
  writing_ = true;
  return welcome_.has_value() ? Step::kWelcome : Step::kAck;
}

absl::Status AgentStream::StoreFailure(const absl::Status& failure) const {
  if (!absl::IsResourceExhausted(failure)) return failure;
  context_.session.metrics->StreamThrottled(Throttling::kQueueFull);
  return absl::UnavailableError(
      absl::StrCat("the collector takes in more than its disk writes: ", failure.message()));
}

void AgentStream::ReadAgain() {
  StartRead(&read_buffer_);
  {
    absl::MutexLock lock(&mutex_);
    starting_read_ = false;
  }
  Advance();  // Others left what they found to this call.
}

void AgentStream::Write(const v1::ServerMessage& message) {
  write_buffer_.Clear();  // gRPC writes no second message into a buffer.
  bool own_buffer = false;
  const grpc::Status serialized =
      grpc::SerializationTraits<v1::ServerMessage>::Serialize(message, &write_buffer_, &own_buffer);
  if (!serialized.ok()) std::abort();  // Only above 2 GiB, which an Ack cannot reach.
  StartWrite(&write_buffer_);
}

void AgentStream::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) broken_ = true;
    if (!ok && !end_.has_value()) end_ = absl::CancelledError();
  }
  Advance();
}

void AgentStream::OnCancel() {
  {
    absl::MutexLock lock(&mutex_);
    broken_ = true;
    if (!end_.has_value()) end_ = absl::CancelledError();
  }
  Advance();
}

void AgentStream::FinishWith(const absl::Status& status) {
  context_.session.agents->Release(stream_);
  context_.session.metrics->StreamEnded(status.code());
  Finish(ToPeer(status, stream_));
}

void AgentStream::OnDone() {
  const std::shared_ptr<AgentStream> self = std::move(self_);
  // Again: a Hello may have been at work while the stream was finished.
  context_.session.agents->Release(stream_);
  context_.on_gone(stream_);
}

RefusedStream::RefusedStream(const absl::Status& status, uint64_t stream) {
  Finish(ToPeer(status, stream));
}

}  // namespace tacho::server
