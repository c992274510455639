// Delivers messages exactly once. Messages that are not durable are kept and sent again, in order,
// on the next stream; sequence numbers let the collector drop what it has.
#include "client/import/upload.h"

#include <algorithm>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/channel/backoff.h"
#include "client/channel/stream_arguments.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/base/clock.h"
#include "proto/base/job_shard.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "proto/rpc/retry_delay.h"
#include "tacho/v1/cluster.grpc.pb.h"

namespace tacho::importer {
namespace {

constexpr absl::Duration kMinBackoff = absl::Milliseconds(200);
constexpr absl::Duration kMaxBackoff = absl::Seconds(10);
constexpr absl::Duration kWelcomeTimeout = absl::Seconds(20);
constexpr absl::Duration kGoodbyeTimeout = absl::Seconds(5);
constexpr int kConnectTimeoutMs = 5000;
constexpr absl::Duration kMembersTimeout = absl::Seconds(10);

absl::Status FromGrpc(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

// Whether another stream may succeed.
bool MayPass(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
      return true;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return RetryDelay(status).has_value();
    default:
      return false;
  }
}

bool Holds(const std::vector<std::pair<uint64_t, uint64_t>>& ranges, uint64_t sequence) {
  return std::any_of(ranges.begin(), ranges.end(), [sequence](const auto& range) {
    return range.first <= sequence && sequence <= range.second;
  });
}

void AddSums(const std::map<v1::Reject::Reason, Refusals::Sum>& from,
             std::map<v1::Reject::Reason, Refusals::Sum>* to) {
  for (const auto& [reason, sum] : from) {
    Refusals::Sum& total = (*to)[reason];
    total.samples += sum.samples;
    total.series += sum.series;
    if (total.example.empty()) total.example = sum.example;
    if (total.detail.empty()) total.detail = sum.detail;
  }
}

void AddRejects(const google::protobuf::RepeatedPtrField<v1::Reject>& rejects,
                std::map<v1::Reject::Reason, Refusals::Sum>* sums) {
  for (const v1::Reject& reject : rejects) {
    Refusals::Sum& sum = (*sums)[reject.reason()];
    sum.samples += reject.samples();
    sum.series += reject.series();
    if (sum.example.empty()) sum.example = reject.example();
    if (sum.detail.empty()) sum.detail = reject.detail();
  }
}

}  // namespace

uint64_t Refusals::refused_samples() const {
  uint64_t samples = 0;
  for (const auto& [reason, sum] : refused) samples += sum.samples;
  return samples;
}

void Refusals::Add(const Refusals& other) {
  AddSums(other.refused, &refused);
  AddSums(other.folded, &folded);
}

Upload::Upload(UploadOptions options)
    : options_(std::move(options)),
      backoff_(kMinBackoff, kMaxBackoff,
               [] {
                 absl::BitGen random;
                 return absl::Uniform(random, 0.0, 1.0);
               }),
      progress_(MonotonicNow()) {}

Upload::~Upload() {
  if (stream_ == nullptr) return;
  context_->TryCancel();
  Hangup();
}

absl::Status Upload::OpenChannel() {
  grpc::ChannelArguments arguments = client::StreamArguments(kConnectTimeoutMs);
  auto secured =
      client::SecureChannel(options_.security, address_, options_.security_names, &arguments);
  if (!secured.ok()) {
    reached_ = true;  // The error is on this side: another try cannot help.
    return secured.status();
  }
  authorization_ = secured->authorization;
  channel_ = grpc::CreateCustomChannel(address_, secured->credentials, arguments);
  stub_ = v1::Ingest::NewStub(channel_);
  return absl::OkStatus();
}

absl::Status Upload::FindOwner(const absl::Status& refusal) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kMembersTimeout));
  if (!authorization_.empty()) context.AddMetadata("authorization", authorization_);
  TACHO_RETURN_IF_ERROR(Enliven(&context));
  const v1::GetMembersRequest request;  // Without only_own, which leaves out the other addresses.
  v1::GetMembersResponse response;
  const grpc::Status status =
      v1::Cluster::NewStub(channel_)->GetMembers(&context, request, &response);
  {
    absl::MutexLock lock(&mutex_);
    live_ = nullptr;
  }
  if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
    return absl::FailedPreconditionError(absl::StrCat(
        refusal.message(),
        " (which member keeps the job it tells only the role read: ", status.error_message(), ")"));
  }
  if (!status.ok() || response.members().empty()) return refusal;
  shards_ = static_cast<uint32_t>(response.members_size());
  shard_ = ShardOfJob(options_.job, shards_);
  address_ = response.members(static_cast<int>(shard_)).address();
  return OpenChannel();
}

absl::Status Upload::Enliven(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  if (cancelled_) return absl::CancelledError("given up");
  live_ = context;
  return absl::OkStatus();
}

absl::Status Upload::Connect() {
  address_ = options_.address;
  shards_ = shard_ = 0;
  TACHO_RETURN_IF_ERROR(OpenChannel());
  absl::Status status = Dial();
  if (absl::IsFailedPrecondition(status) && !options_.job.empty()) {
    TACHO_RETURN_IF_ERROR(FindOwner(status));
    status = Dial();
  }
  // A collector that answers but is busy is worth waiting for; silence is not.
  if (!status.ok() && reached_ && absl::IsUnavailable(status)) {
    status = Reconnect(status);
  } else if (status.ok() && !Resend()) {
    status = Reconnect(FromGrpc(Hangup()));
  }
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  durable_at_begin_ = durable_;
  return absl::OkStatus();
}

bool Upload::WasDurable(uint64_t sequence) const { return Holds(durable_at_begin_, sequence); }

absl::Status Upload::Dial() {
  auto context = std::make_unique<grpc::ClientContext>();
  if (!authorization_.empty()) context->AddMetadata("authorization", authorization_);
  TACHO_RETURN_IF_ERROR(Enliven(context.get()));
  {
    absl::MutexLock lock(&mutex_);
    welcomed_ = false;
    ended_ = false;
  }
  context_ = std::move(context);
  stream_ = stub_->Stream(context_.get());
  reader_ = std::thread([this, stream = stream_.get()] { Read(stream); });
  v1::ClientMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_agent_id(options_.agent_id);
  hello.set_spool_generation(options_.generation);
  hello.set_first_sequence(1);
  hello.set_version(options_.version);
  hello.set_imports(options_.imports);
  hello.set_shards(shards_);
  hello.set_shard(shard_);
  hello.set_clock_unix_ns(absl::ToUnixNanos(absl::Now()));
  stream_->Write(message);
  bool welcomed = false;
  bool ended = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto answered = [this]()
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return welcomed_ || ended_; };
    AwaitFor(&mutex_, absl::Condition(&answered), kWelcomeTimeout);
    welcomed = welcomed_;
    ended = ended_;
  }
  if (welcomed) {
    ++connections_;
    reached_ = true;
    progress_ = MonotonicNow();
    backoff_.Reset();
    absl::MutexLock lock(&mutex_);
    max_layouts_ = std::max<uint32_t>(welcome_.limits().max_layouts(), 1);
    next_layout_ = 0;
    layouts_.clear();
    layout_ids_.clear();
    return absl::OkStatus();
  }
  const bool connected = channel_->GetState(false) == GRPC_CHANNEL_READY;
  if (!ended) context_->TryCancel();  // Else it could hide why the collector ended the stream.
  const grpc::Status status = Hangup();
  reached_ = reached_ || connected || !MayPass(status);
  if (status.error_code() == grpc::StatusCode::CANCELLED || status.ok()) {
    return absl::UnavailableError("the collector did not answer");
  }
  return FromGrpc(status);
}

grpc::Status Upload::Hangup() {
  bool ended = false;
  {
    absl::MutexLock lock(&mutex_);
    ended = AwaitFor(&mutex_, absl::Condition(&ended_), kGoodbyeTimeout);
  }
  if (!ended) context_->TryCancel();
  reader_.join();
  grpc::Status status = stream_->Finish();
  stream_.reset();
  retry_after_ = RetryDelay(status);
  return status;
}

absl::Status Upload::Reconnect(const absl::Status& why) {
  absl::Status last = why;
  while (true) {
    if (!Sleep(absl::ZeroDuration())) return absl::CancelledError("given up");
    const absl::Duration pause = backoff_.Next(retry_after_);
    if (MonotonicNow() + pause - progress_ > options_.patience) {
      return absl::UnavailableError(
          absl::StrCat("given up after ", absl::FormatDuration(options_.patience),
                       " without progress: ", last.message(),
                       ". What was acknowledged is stored: the same command goes on from there"));
    }
    Say(absl::StrCat("the collector cannot be reached or is busy (", last.message(),
                     "); trying again in ",
                     absl::FormatDuration(absl::Ceil(pause, absl::Milliseconds(100)))));
    if (!Sleep(pause)) return absl::CancelledError("given up");
    last = Dial();
    if (!last.ok()) {
      if (!absl::IsUnavailable(last) && !absl::IsInternal(last) && !absl::IsUnknown(last) &&
          !absl::IsDeadlineExceeded(last)) {
        return last;
      }
      continue;
    }
    if (Resend()) return absl::OkStatus();
    const grpc::Status status = Hangup();
    last = FromGrpc(status);
    if (!MayPass(status)) return last;
  }
}

bool Upload::Resend() {
  DropDurable();
  return std::all_of(pending_.begin(), pending_.end(),
                     [this](Pending& pending) { return Write(&pending); });
}

void Upload::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (live_ != nullptr) live_->TryCancel();
}

bool Upload::Sleep(absl::Duration duration) const {
  absl::MutexLock lock(&mutex_);
  return !AwaitFor(&mutex_, absl::Condition(&cancelled_), duration);
}

void Upload::Read(Stream* stream) {
  v1::ServerMessage message;
  while (stream->Read(&message)) Take(message);
  absl::MutexLock lock(&mutex_);
  ended_ = true;
}

void Upload::Take(const v1::ServerMessage& message) {
  absl::MutexLock lock(&mutex_);
  if (message.has_welcome()) {
    welcome_ = message.welcome();
    NoteDurable(welcome_.durable_sequence(), welcome_.durable_ahead());
    welcomed_ = true;
  } else if (message.has_ack()) {
    NoteDurable(message.ack().durable_sequence(), message.ack().durable_ahead());
    AddRejects(message.ack().rejects(), &refusals_.refused);
    AddRejects(message.ack().folded(), &refusals_.folded);
  } else if (message.has_throttle()) {
    rows_per_second_ = message.throttle().max_rows_per_second();
    not_before_ = MonotonicNow() + absl::Milliseconds(message.throttle().pause_ms());
  }
}

void Upload::NoteDurable(uint64_t watermark,
                         const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead) {
  durable_.clear();
  durable_.emplace_back(0, watermark);
  for (const v1::SequenceRange& range : ahead) durable_.emplace_back(range.first(), range.last());
  ++changes_;
}

bool Upload::IsDurable(uint64_t sequence) const { return Holds(durable_, sequence); }

void Upload::DropDurable() {
  absl::MutexLock lock(&mutex_);
  const size_t before = pending_.size();
  while (!pending_.empty() && IsDurable(pending_.front().sequence)) {
    pending_bytes_ -= pending_.front().bytes;
    pending_.pop_front();
    ++delivered_;
  }
  if (pending_.size() < before) progress_ = MonotonicNow();
}

bool Upload::HasRoom() const {
  return pending_bytes_ < kWindowBytes && pending_.size() < kWindowMessages;
}

absl::Status Upload::WaitFor(const std::function<bool()>& enough) {
  while (true) {
    DropDurable();
    if (enough()) return absl::OkStatus();
    bool ended = false;
    bool changed = false;
    bool cancelled = false;
    {
      absl::MutexLock lock(&mutex_);
      const uint64_t seen = changes_;
      const auto news = [this, seen]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return ended_ || cancelled_ || changes_ != seen;
      };
      // An acknowledgement between DropDurable() and here is in durable_ already.
      changed = !pending_.empty() && IsDurable(pending_.front().sequence);
      if (!changed) {
        changed = AwaitUntil(&mutex_, absl::Condition(&news), progress_ + options_.patience);
      }
      ended = ended_;
      cancelled = cancelled_;
    }
    if (cancelled) return absl::CancelledError("given up");
    if (!changed) {
      return absl::DeadlineExceededError(
          absl::StrCat("nothing was acknowledged for ", absl::FormatDuration(options_.patience)));
    }
    if (!ended) continue;
    DropDurable();
    if (enough()) return absl::OkStatus();
    const grpc::Status status = Hangup();
    if (!MayPass(status)) return FromGrpc(status);
    if (absl::Status again = Reconnect(FromGrpc(status)); !again.ok()) return again;
  }
}

void Upload::ObeyThrottle(uint64_t rows) {
  absl::Time not_before;
  {
    absl::MutexLock lock(&mutex_);
    not_before = not_before_;
    if (rows_per_second_ > 0) {
      not_before_ = std::max(MonotonicNow(), not_before_) +
                    absl::Seconds(1) * static_cast<int64_t>(rows) / rows_per_second_;
    }
  }
  const absl::Duration wait = not_before - MonotonicNow();
  if (wait <= absl::ZeroDuration()) return;
  if (wait > absl::Seconds(2)) {
    Say(absl::StrCat("the collector asks to slow down; going on in ",
                     absl::FormatDuration(absl::Ceil(wait, absl::Seconds(1)))));
  }
  Sleep(wait);
}

absl::Status Upload::Send(uint64_t sequence, const v1::Layout* layout, v1::ClientMessage message) {
  absl::Status room = WaitFor([this] { return HasRoom(); });
  if (!room.ok()) return room;
  Pending& pending = pending_.emplace_back();
  pending.sequence = sequence;
  pending.bytes = message.ByteSizeLong();
  pending.rows = static_cast<uint64_t>(message.batch().times_unix_ns_size());
  pending.layout = layout;
  pending.message = std::move(message);
  pending_bytes_ += pending.bytes;
  ObeyThrottle(pending.rows);
  if (stream_ != nullptr && Write(&pending)) return absl::OkStatus();
  const grpc::Status status = stream_ == nullptr ? grpc::Status() : Hangup();
  if (!MayPass(status)) return FromGrpc(status);
  return Reconnect(FromGrpc(status));
}

bool Upload::Write(Pending* pending) {
  if (pending->layout != nullptr) {
    const auto [found, added] = layout_ids_.emplace(pending->layout, next_layout_);
    if (added) {
      // Numbers are taken in turn: the layout that had this one is defined again when it is needed.
      if (layouts_.size() == next_layout_) {
        layouts_.push_back(nullptr);
      } else {
        layout_ids_.erase(layouts_[next_layout_]);
      }
      layouts_[next_layout_] = pending->layout;
      v1::ClientMessage definition;
      *definition.mutable_layout() = *pending->layout;
      definition.mutable_layout()->set_id(next_layout_);
      pending->message.mutable_batch()->set_layout(next_layout_);
      next_layout_ = (next_layout_ + 1) % max_layouts_;
      if (!stream_->Write(definition)) return false;
    } else {
      pending->message.mutable_batch()->set_layout(found->second);
    }
  }
  return stream_->Write(pending->message);
}

absl::Status Upload::Finish() {
  absl::Status status = WaitFor([this] { return pending_.empty(); });
  if (!status.ok() || stream_ == nullptr) return status;
  stream_->WritesDone();
  Hangup();  // Everything is durable, so its status does not matter.
  return absl::OkStatus();
}

Refusals Upload::refusals() const {
  absl::MutexLock lock(&mutex_);
  return refusals_;
}

void Upload::Say(absl::string_view text) const {
  if (options_.say) options_.say(text);
}

}  // namespace tacho::importer
