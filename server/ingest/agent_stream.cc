// gRPC's callbacks come on any of its threads, the store's on the committer's, the pacer's on its
// own. All of them only change the state under one lock and call Advance(), which is the one place
// that starts a write, a read or the end: so no two of them start anything twice.
#include "server/ingest/agent_stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/ingest/wire_check.h"

namespace tacho::server::ingest {
namespace {

// Holds a message of some hundred values, so that parsing it allocates nothing.
constexpr size_t kArenaBytes = 16 << 10;
// While acknowledgements wait for the bucket.
constexpr absl::Duration kLookForRoom = absl::Milliseconds(200);

std::string ReasonOf(edge::Quotas::Limit limit) {
  switch (limit) {
    case edge::Quotas::Limit::kAgentRate:
      return "more samples than quotas.agent_samples_per_second";
    case edge::Quotas::Limit::kJobRate:
      return "more samples for the job than quotas.job_samples_per_second";
    case edge::Quotas::Limit::kDefinitions:
      return "more series defined than limits.definitions_per_second";
    default:
      return "the collector's memory is short (quotas.memory_bytes)";
  }
}

// The agent does not notice shorter waits, and does not gain from hearing of them more often.
constexpr absl::Duration kLeastWait = absl::Milliseconds(100);
constexpr absl::Duration kTellEvery = absl::Seconds(1);

}  // namespace

std::optional<v1::Throttle> StreamPace::Slowed(absl::Duration wait, uint64_t max_rows_per_second,
                                               std::string reason, absl::Time now) {
  if (lift_at_ != absl::InfiniteFuture()) lift_at_ = now + kLiftAfter;
  if (wait < kLeastWait || now - told_ < kTellEvery) return std::nullopt;
  told_ = now;
  if (max_rows_per_second != 0) lift_at_ = now + kLiftAfter;
  v1::Throttle throttle;
  throttle.set_max_rows_per_second(
      static_cast<uint32_t>(std::min<uint64_t>(max_rows_per_second, UINT32_MAX)));
  throttle.set_pause_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
  throttle.set_reason(std::move(reason));
  return throttle;
}

std::optional<v1::Throttle> StreamPace::Look(absl::Time now) {
  if (now < lift_at_) return std::nullopt;
  lift_at_ = absl::InfiniteFuture();
  v1::Throttle lifted;
  lifted.set_reason("within the quotas again");
  return lifted;
}

AgentStream::AgentStream(const StreamContext* context, uint64_t stream, Opened opened)
    : context_(*context),
      stream_(stream),
      opened_(std::move(opened)),
      hello_timeout_(context->session.quotas->hello_timeout()),
      hello_by_(MonotonicNow() + hello_timeout_) {}

std::shared_ptr<AgentStream> AgentStream::Start(const StreamContext* context, uint64_t stream,
                                                Opened opened) {
  std::shared_ptr<AgentStream> reactor(new AgentStream(context, stream, std::move(opened)));
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
      live->End(
          errors::ErrorOf(errors::Failure::kSuperseded, "a newer stream of this agent took over"));
    }
  };
  reactor->session_ = std::make_unique<StreamSession>(&context->session, reactor->acks_, stream,
                                                      evict, reactor->caller().rights_ptr());
  reactor->session_->SetSend([weak](v1::AgentRequest request) {
    if (const auto live = weak.lock()) live->Ask(std::move(request));
  });
  context->timer->At(reactor->hello_by_, weak);
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
  if (session_->IsToBeQueued(read_buffer_.Length()) && IsLayout()) {
    context_.session.definitions->Add(session_->DefinitionDebt(),
                                      [self = shared_from_this()] { self->HandleQueued(); });
    return;
  }
  if (HandleRead()) ReadOn();
}

void AgentStream::HandleQueued() {
  if (IsEnding() || !HandleRead()) return;
  // Not ReadOn(): outside of gRPC's callback the call could end under it.
  const edge::Quotas::Wait wait = session_->wait();
  if (MayReadAfter(wait)) {
    absl::MutexLock lock(&mutex_);
    read_waits_ = true;
    waits_for_ = edge::Quotas::Limit::kNone;
    waits_since_ = MonotonicNow();
    resume_at_ = absl::InfinitePast();
  } else {
    HoldBack(wait);
  }
  Advance();
}

bool AgentStream::HandleRead() {
  {
    alignas(8) char block[kArenaBytes];
    google::protobuf::ArenaOptions options;
    options.initial_block = block;
    options.initial_block_size = sizeof(block);
    google::protobuf::Arena arena(options);
    const auto untrusted = Parse(&arena);
    if (!untrusted.ok()) {
      End(untrusted.status());
      return false;
    }
    auto welcome = session_->Handle(**untrusted);
    if (!welcome.ok()) {
      EndAfterMessage(welcome.status());
      return false;
    }
    if (welcome->has_value()) Greet(**std::move(welcome));
    if (auto clock = session_->TakeClock(); clock.has_value()) {
      absl::MutexLock lock(&mutex_);
      agent_clock_ = std::move(clock);
    }
  }
  return true;
}

bool AgentStream::IsLayout() const {
  // The first byte is the tag of the message: a ClockReport comes after it.
  constexpr uint8_t kTag = v1::ClientMessage::kLayoutFieldNumber << 3 | 2;
  std::vector<grpc::Slice> slices;
  if (!read_buffer_.Dump(&slices).ok()) return false;
  for (const grpc::Slice& slice : slices) {
    if (slice.size() > 0) return *slice.begin() == kTag;
  }
  return false;
}

void AgentStream::EndAfterMessage(absl::Status status) {
  if (errors::RowOf(status).failure == errors::Failure::kClockDoubted) {
    absl::MutexLock lock(&mutex_);
    throttle_.emplace();
    throttle_->set_pause_ms(
        static_cast<uint32_t>(absl::ToInt64Milliseconds(*errors::RetryAfter(status, stream_))));
    throttle_->set_reason(std::string(status.message()));
  }
  End(std::move(status));
}

bool AgentStream::IsEnding() {
  absl::MutexLock lock(&mutex_);
  return end_.has_value() || finished_;
}

absl::Status AgentStream::CheckParts() {
  const size_t bytes = read_buffer_.Length();
  if (bytes <= kWireCheckBytes) return absl::OkStatus();
  const Admission& admission = *context_.session.admission;
  if (bytes > admission.limits().max_message_bytes()) {
    read_buffer_.Clear();
    return admission.RefuseSize(bytes);
  }
  grpc::ProtoBufferReader reader(&read_buffer_);
  if (HasSaneParts(&reader, bytes, admission.limits().max_series_per_layout())) {
    return absl::OkStatus();
  }
  read_buffer_.Clear();
  return admission.RefuseParts();
}

absl::StatusOr<v1::ClientMessage*> AgentStream::Parse(google::protobuf::Arena* arena) {
  if (edge::ConnectionUse* const use = opened_.connection.get(); use != nullptr) {
    use->messages.fetch_add(1, std::memory_order_relaxed);
    use->message_bytes.fetch_add(read_buffer_.Length(), std::memory_order_relaxed);
  }
  TACHO_RETURN_IF_ERROR(CheckParts());
  auto* const message = google::protobuf::Arena::CreateMessage<v1::ClientMessage>(arena);
  bool parsed = false;
  {
    grpc::ProtoBufferReader reader(&read_buffer_);
    parsed = reader.status().ok() && message->ParseFromZeroCopyStream(&reader);
  }
  read_buffer_.Clear();
  if (!parsed) return context_.session.admission->RefuseEncoding();
  return message;
}

void AgentStream::Ask(v1::AgentRequest request) {
  {
    absl::MutexLock lock(&mutex_);
    requests_.push_back(std::move(request));
  }
  Advance();
}

void AgentStream::Greet(v1::Welcome welcome) {
  if (opened_.connection != nullptr) {
    opened_.connection->welcomed.store(true, std::memory_order_relaxed);
  }
  {
    absl::MutexLock lock(&mutex_);
    TACHO_CHECK(!greeted_);
    welcome_ = std::move(welcome);
    greeted_ = true;
  }
  Advance();
}

bool AgentStream::MayRead(uint64_t pending_bytes) const {
  return pending_bytes <= context_.session.quotas->stream_pending_bytes() &&
         !context_.total_pending->IsFull();
}

bool AgentStream::MayReadAfter(const edge::Quotas::Wait& wait) const {
  return wait.limit == edge::Quotas::Limit::kNone && MayRead(acks_->pending_bytes());
}

void AgentStream::ReadOn() {
  const edge::Quotas::Wait wait = session_->wait();
  if (MayReadAfter(wait)) {
    StartRead(&read_buffer_);
    return;
  }
  HoldBack(wait);
  Advance();  // The disk may have caught up in between.
}

void AgentStream::HoldBack(edge::Quotas::Wait wait) {
  const absl::Time now = MonotonicNow();
  {
    absl::MutexLock lock(&mutex_);
    read_waits_ = true;
    waits_for_ = wait.limit;
    waits_since_ = now;
    resume_at_ = now + wait.length;
    if (wait.limit != edge::Quotas::Limit::kNone) {
      auto throttle =
          pace_.Slowed(wait.length, session_->RowsPerSecond(), ReasonOf(wait.limit), now);
      if (throttle.has_value()) throttle_ = std::move(throttle);
    }
    AwaitNextLook(now);
  }
  context_.session.metrics->StreamHeldBack(wait.limit);
  if (wait.limit == edge::Quotas::Limit::kNone) return;
  context_.timer->At(now + wait.length, weak_from_this());
}

void AgentStream::AwaitNextLook(absl::Time now) {
  const absl::Time next = pace_.next_look();
  if (next == absl::InfiniteFuture() || now < looks_at_) return;
  looks_at_ = next;
  context_.timer->At(next, weak_from_this());
}

bool AgentStream::MayReadAgain(uint64_t pending_bytes, absl::Time now) {
  if (now < resume_at_) return false;
  if (MayRead(pending_bytes)) return true;
  if (pending_bytes == 0 && !awaits_room_) {
    awaits_room_ = true;
    context_.total_pending->AwaitRoom(weak_from_this());
  }
  // Its messages settle when they are in the bucket, which may be away. The disk makes room sooner.
  if (pending_bytes > 0 && context_.session.quotas->waits_for_bucket() &&
      now >= looks_for_room_at_) {
    looks_for_room_at_ = now + kLookForRoom;
    context_.timer->At(looks_for_room_at_, weak_from_this());
  }
  return false;
}

void AgentStream::OnTick() {
  {
    absl::MutexLock lock(&mutex_);
    awaits_room_ = false;
    if (!greeted_ || pace_.next_look() != absl::InfiniteFuture()) LookAtClock(MonotonicNow());
  }
  Advance();
}

void AgentStream::LookAtClock(absl::Time now) {
  if (!greeted_ && !end_.has_value() && now >= hello_by_) {
    end_ = errors::ErrorOf(errors::Failure::kTooSlow,
                           absl::StrCat("no Hello within quotas.hello_timeout, ",
                                        absl::FormatDuration(hello_timeout_)));
  }
  if (auto lifted = pace_.Look(now); lifted.has_value()) throttle_ = std::move(lifted);
  AwaitNextLook(now);  // It may have been put off since the timer was set.
}

void AgentStream::Advance() {
  Step step = Step::kNone;
  v1::ServerMessage message;
  absl::Status end;
  std::optional<v1::ClockEstimate> agent_clock;
  {
    absl::MutexLock lock(&mutex_);
    if (finished_ || writing_ || starting_read_) return;
    const AckCoalescer::State acks = acks_->Look();
    if (!acks.failure.ok() && !end_.has_value()) end_ = StoreFailure(acks.failure);
    step = NextStep(acks, read_waits_ ? MonotonicNow() : absl::InfinitePast());
    if (step == Step::kWelcome) {
      TACHO_CHECK(welcome_.has_value());
      *message.mutable_welcome() = *std::exchange(welcome_, std::nullopt);
      message.mutable_welcome()->set_clock_mark(ClockMark());
    }
    if (step == Step::kAck) agent_clock = std::exchange(agent_clock_, std::nullopt);
    if (step == Step::kThrottle) {
      TACHO_CHECK(throttle_.has_value());
      *message.mutable_throttle() = *std::exchange(throttle_, std::nullopt);
    }
    if (step == Step::kRequest) {
      *message.mutable_request() = std::move(requests_.front());
      requests_.pop_front();
    }
    if (step == Step::kFinish) end = broken_ ? absl::CancelledError("connection lost") : *end_;
  }
  switch (step) {
    case Step::kNone:
      return;
    case Step::kWelcome:
    case Step::kThrottle:
    case Step::kRequest:
      return Write(message);
    case Step::kAck:
      *message.mutable_ack() = acks_->TakeAck();
      if (agent_clock.has_value()) *message.mutable_ack()->mutable_agent_clock() = *agent_clock;
      message.mutable_ack()->set_clock_mark(ClockMark());
      context_.session.metrics->AckSent();
      return Write(message);
    case Step::kRead:
      return ReadAgain();
    case Step::kFinish:
      return FinishWith(end);
  }
}

AgentStream::Step AgentStream::NextStep(const AckCoalescer::State& acks, absl::Time now) {
  // A Throttle that waits goes out first: it may give the reason of the end.
  if (end_.has_value() && (broken_ || (acks.pending_messages == 0 && !acks.ack_due &&
                                       !welcome_.has_value() && !throttle_.has_value()))) {
    finished_ = true;
    return Step::kFinish;
  }
  if (!end_.has_value() && read_waits_ && MayReadAgain(acks.pending_bytes, now)) {
    read_waits_ = false;
    starting_read_ = true;
    context_.session.metrics->StreamWaited(waits_for_, now - waits_since_);
    return Step::kRead;
  }
  if (broken_) return Step::kNone;
  const bool asks = greeted_ && !end_.has_value() && !requests_.empty();
  const Step write = welcome_.has_value()    ? Step::kWelcome
                     : throttle_.has_value() ? Step::kThrottle
                     : asks                  ? Step::kRequest
                     : acks.ack_due          ? Step::kAck
                                             : Step::kNone;
  writing_ = write != Step::kNone;
  return write;
}

absl::Status AgentStream::StoreFailure(const absl::Status& failure) const {
  if (absl::IsUnavailable(failure))
    return errors::ErrorOf(errors::Failure::kDiskRefuses, failure.message());
  if (!absl::IsResourceExhausted(failure)) return failure;
  context_.session.metrics->QueueWasFull();
  return errors::ErrorOf(
      errors::Failure::kOverloaded,
      absl::StrCat("the collector takes in more than its disk writes: ", failure.message()));
}

void AgentStream::ReadAgain() {
  StartRead(&read_buffer_);
  {
    absl::MutexLock lock(&mutex_);
    TACHO_CHECK(starting_read_ && !finished_);
    starting_read_ = false;
  }
  Advance();  // Others left what they found to this call.
}

uint64_t AgentStream::ClockMark() const {
  return context_.session.clocks == nullptr ? 0 : context_.session.clocks->Mark();
}

void AgentStream::Write(const v1::ServerMessage& message) {
  write_buffer_.Clear();  // gRPC writes no second message into a buffer.
  bool own_buffer = false;
  const grpc::Status serialized =
      grpc::SerializationTraits<v1::ServerMessage>::Serialize(message, &write_buffer_, &own_buffer);
  TACHO_CHECK(serialized.ok());  // Only above 2 GiB, which an Ack cannot reach.
  StartWrite(&write_buffer_);
}

void AgentStream::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    TACHO_CHECK(writing_);
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
  if (context_.session.asker != nullptr) context_.session.asker->Leave(stream_);
  context_.session.metrics->StreamEnded(status.code());
  LogEnd(status);
  Finish(errors::ToGrpcStatus(status, stream_));
}

void AgentStream::LogEnd(const absl::Status& status) const {
  // A restart ends all of them at once: their lines must not use up those of the others.
  const bool usual = status.ok() || absl::IsCancelled(status);
  const bool retries = absl::IsUnavailable(status);
  const log::Level level = usual     ? log::Level::kDebug
                           : retries ? log::Level::kInfo
                                     : log::Level::kWarn;
  const char* const message = usual     ? "stream ended"
                              : retries ? "stream put off"
                                        : "stream refused";
  context_.session.log.Limited(level, message,
                               {{"peer", opened_.peer},
                                {"agent", acks_->agent_id()},
                                {"code", absl::StatusCodeToString(status.code())},
                                {"reason", status.message()}});
}

void AgentStream::OnDone() {
  const std::shared_ptr<AgentStream> self = std::move(self_);
  TACHO_CHECK(self != nullptr);
  // Again: a Hello may have been at work while the stream was finished.
  context_.session.agents->Release(stream_);
  if (context_.session.asker != nullptr) context_.session.asker->Leave(stream_);
  context_.on_gone(stream_);
}

RefusedStream::RefusedStream(const absl::Status& status, uint64_t stream) {
  Finish(errors::ToGrpcStatus(status, stream));
}

}  // namespace tacho::server::ingest
