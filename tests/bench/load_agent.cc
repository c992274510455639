#include "tests/bench/load_agent.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "tacho/v1/ingest.pb.h"
#include "tests/bench/load_report.h"

namespace tacho::bench {
namespace {

constexpr char kMethod[] = "/tacho.v1.Ingest/Stream";
constexpr uint64_t kMaxFruitlessRetries = 60;

}  // namespace

LoadAgent::LoadAgent(const LoadAgentOptions& options, AgentMessages messages,
                     std::function<void()> on_ready, std::function<void(LoadAgent*)> on_retry,
                     std::function<void(const std::string&)> on_done)
    : options_(options),
      messages_(std::move(messages)),
      on_ready_(std::move(on_ready)),
      on_retry_(std::move(on_retry)),
      on_done_(std::move(on_done)),
      sent_at_(messages_.batches.size()) {
  latencies_ms_.reserve(messages_.batches.size());
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // Else all agents share a connection.
  channel_ =
      grpc::CreateCustomChannel(options_.address, grpc::InsecureChannelCredentials(), arguments);
  stub_ =
      std::make_unique<grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>>(channel_);
}

void LoadAgent::Connect() {
  context_ = std::make_unique<grpc::ClientContext>();
  stub_->PrepareBidiStreamingCall(context_.get(), kMethod, grpc::StubOptions(), this);
  {
    absl::MutexLock lock(&mutex_);
    writing_ = true;
    broken_ = false;
    layouts_sent_ = 0;
  }
  AddHold();  // Batches are started from outside the reactor's own calls.
  StartRead(&read_buffer_);
  StartWrite(&messages_.hello);
  StartCall();
}

void LoadAgent::Start() {
  {
    absl::MutexLock lock(&mutex_);
    started_ = true;
  }
  WriteOn();
}

void LoadAgent::Allow(uint64_t batches) {
  {
    absl::MutexLock lock(&mutex_);
    allowed_ += batches;
  }
  WriteOn();
}

void LoadAgent::WriteOn() {
  const grpc::ByteBuffer* message = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (!started_ || writing_ || broken_) return;
    message = NextMessage();
    const bool complete = acknowledged_ == messages_.batches.size();
    if (message == nullptr && !complete) return;
    writing_ = true;  // For good, if this is the end.
  }
  if (message == nullptr) return StartWritesDone();
  StartWrite(message);
}

const grpc::ByteBuffer* LoadAgent::NextMessage() {
  if (layouts_sent_ < messages_.layouts.size()) return &messages_.layouts[layouts_sent_++];
  if (sent_ == messages_.batches.size() || sent_ == allowed_) return nullptr;
  if (sent_ - acknowledged_ >= options_.window) return nullptr;
  if (sent_at_[sent_] == 0) sent_at_[sent_] = MonotonicSeconds();
  return &messages_.batches[sent_++];
}

void LoadAgent::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) broken_ = true;
  }
  WriteOn();
}

void LoadAgent::OnReadDone(bool ok) {
  if (!ok) {
    {
      absl::MutexLock lock(&mutex_);
      broken_ = true;
    }
    RemoveHold();
    return;
  }
  v1::ServerMessage message;
  grpc::ProtoBufferReader reader(&read_buffer_);
  const bool parsed = message.ParseFromZeroCopyStream(&reader);
  read_buffer_.Clear();
  if (!parsed) context_->TryCancel();
  if (message.has_welcome()) Welcomed(message.welcome().durable_sequence());
  if (message.has_ack()) Acknowledged(message.ack().durable_sequence());
  StartRead(&read_buffer_);
}

void LoadAgent::Welcomed(uint64_t durable_sequence) {
  if (!std::exchange(was_welcomed_, true)) return on_ready_();
  Acknowledged(durable_sequence);
  {
    absl::MutexLock lock(&mutex_);
    sent_ = acknowledged_;
  }
  Start();
}

void LoadAgent::Acknowledged(uint64_t durable_sequence) {
  {
    absl::MutexLock lock(&mutex_);
    const double now = MonotonicSeconds();
    while (acknowledged_ < durable_sequence && acknowledged_ < sent_) {
      latencies_ms_.push_back(static_cast<float>((now - sent_at_[acknowledged_++]) * 1e3));
    }
  }
  WriteOn();
}

void LoadAgent::OnDone(const grpc::Status& status) {
  uint64_t missing = 0;
  {
    absl::MutexLock lock(&mutex_);
    started_ = false;
    missing = messages_.batches.size() - acknowledged_;
    if (acknowledged_ != acknowledged_at_end_) fruitless_retries_ = 0;
    acknowledged_at_end_ = acknowledged_;
  }
  if (status.ok() && missing == 0) return on_done_("");
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && was_welcomed_ &&
      fruitless_retries_ < kMaxFruitlessRetries) {
    ++retries_;
    ++fruitless_retries_;
    return on_retry_(this);
  }
  on_done_(absl::StrCat("stream ended with code ", status.error_code(), " (",
                        status.error_message(), "), ", missing, " batches unacknowledged"));
}

}  // namespace tacho::bench
