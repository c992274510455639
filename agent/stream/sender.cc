#include "agent/stream/sender.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "agent/stream/monotonic_time.h"
#include "agent/stream/retry_info.h"
#include "grpc/support/time.h"

namespace tacho::agent {
namespace {

// A collector that ends a stream politely needs no longer than this.
constexpr absl::Duration kFarewell = absl::Milliseconds(500);

std::function<double()> UsualRandom() {
  auto generator = std::make_shared<absl::BitGen>();
  return [generator] { return absl::Uniform<double>(*generator, 0, 1); };
}

gpr_timespec Deadline(absl::Time until) {
  if (until == absl::InfiniteFuture()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const absl::Duration wait = std::max(until - MonotonicNow(), absl::ZeroDuration());
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(absl::ToInt64Microseconds(wait) + 1, GPR_TIMESPAN));
}

const char* CodeName(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return "closed by the collector";
    case grpc::StatusCode::CANCELLED:
      return "CANCELLED";
    case grpc::StatusCode::INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return "DEADLINE_EXCEEDED";
    case grpc::StatusCode::ALREADY_EXISTS:
      return "ALREADY_EXISTS";
    case grpc::StatusCode::PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    case grpc::StatusCode::UNAUTHENTICATED:
      return "UNAUTHENTICATED";
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case grpc::StatusCode::FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case grpc::StatusCode::UNIMPLEMENTED:
      return "UNIMPLEMENTED";
    case grpc::StatusCode::UNAVAILABLE:
      return "UNAVAILABLE";
    default:
      return "an internal error";
  }
}

// What a person can do about it; empty if waiting is all.
const char* Advice(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::ALREADY_EXISTS:
      return "; another agent is connected under this identity.agent_id: give each its own, or "
             "stop "
             "the other one";
    case grpc::StatusCode::UNIMPLEMENTED:
      return "; is collector.address a tacho-collector of this version?";
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
      return "; the collector does not let this agent in";
    default:
      return "";
  }
}

}  // namespace

Sender::Sender(StreamOptions options, Spool* spool)
    : options_(std::move(options)),
      spool_(spool),
      backoff_(options_.backoff_min, options_.backoff_max,
               options_.random ? options_.random : UsualRandom()) {}

Sender::~Sender() { Stop(absl::ZeroDuration()); }

void Sender::Start() {
  spool_->SetListener([this] { wake_up_.Ring(); });
  thread_ = std::thread([this] { Run(); });
}

void Sender::Stop(absl::Duration flush) {
  {
    absl::MutexLock lock(&mutex_);
    stop_by_ = std::min(stop_by_, MonotonicNow() + flush);
  }
  wake_up_.Ring();
  if (!thread_.joinable()) return;
  thread_.join();
  spool_->SetListener(nullptr);
}

SenderStats Sender::Stats() const {
  return {.connected = connected_, .streams = streams_, .messages_sent = messages_sent_};
}

void Sender::Run() {
  for (;;) {
    const absl::Time now = MonotonicNow();
    SyncIfDue(now);
    RunOnce(now);
    if (MayStop(now)) break;
    Wait(NextWake(MonotonicNow()));
  }
  EndSession();
  DrainQueue();
}

void Sender::RunOnce(absl::Time now) {
  if (session_ != nullptr && session_->finished()) OnStreamEnd(now);
  if (session_ == nullptr && now >= connect_at_ && !broken_) {
    last_attempt_made_ = stopping_;
    ++streams_;
    welcome_by_ = now + options_.welcome_timeout;
    session_ = std::make_unique<StreamSession>(options_, spool_, &memory_, &queue_);
  }
  if (session_ == nullptr) return;

  if (session_->progressed()) backoff_.Reset();
  if (!session_->welcomed() && now >= welcome_by_) session_->Cancel();
  if (absl::Status status = session_->Pump(); !status.ok()) {
    broken_ = true;
    session_->Cancel();
    if (options_.broken) options_.broken(status);
  }
  connected_ = session_->welcomed();
  messages_sent_ = memory_.messages_sent;
}

bool Sender::MayStop(absl::Time now) {
  absl::Time stop_by;
  {
    absl::MutexLock lock(&mutex_);
    stop_by = stop_by_;
  }
  if (stop_by == absl::InfiniteFuture()) return false;
  if (!stopping_) {
    stopping_ = true;
    if (absl::Status status = spool_->Sync(); !status.ok()) {
      Say(options_.log, LogLevel::kError, absl::StrCat("sync the spool: ", status.message()));
    }
    connect_at_ = now;  // One more attempt, if there is no stream.
  }
  const bool delivered = spool_->begin() == spool_->end();
  const bool out_of_reach = session_ == nullptr && last_attempt_made_;
  return delivered || out_of_reach || broken_ || now >= stop_by;
}

void Sender::SyncIfDue(absl::Time now) {
  if (spool_->synced_end() >= spool_->end()) return;
  if (now < last_sync_ + options_.sync_interval && !stopping_) return;
  last_sync_ = now;
  absl::Status status = spool_->Sync();
  if (!status.ok() && memory_.logged.Allow("sync", now)) {
    Say(options_.log, LogLevel::kError, absl::StrCat("sync the spool: ", status.message()));
  }
}

absl::Time Sender::NextWake(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  if (spool_->synced_end() < spool_->end()) {
    next = std::max(last_sync_ + options_.sync_interval, now);
  }
  if (stopping_) next = std::min(next, now + kFarewell);  // To look at the deadline.
  if (session_ == nullptr) return broken_ ? next : std::min(next, connect_at_);
  if (!session_->welcomed()) next = std::min(next, welcome_by_);
  return std::min(next, session_->next_pump());
}

// Waits for one event, then takes those that are there already.
void Sender::Wait(absl::Time until) {
  void* tag = nullptr;
  bool ok = false;
  gpr_timespec deadline = Deadline(until);
  while (queue_.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
    Handle(tag, ok);
    deadline = gpr_inf_past(GPR_CLOCK_MONOTONIC);
  }
}

void Sender::Handle(void* tag, bool ok) {
  if (tag == wake_up_.tag()) {
    wake_up_.Answer();
  } else {
    session_->Handle(static_cast<IngestCall::Tag*>(tag), ok);
  }
}

void Sender::OnStreamEnd(absl::Time now) {
  if (!session_->done()) return;  // Its last tags come at once.
  const grpc::Status status = session_->status();
  const bool copy = session_->spool_is_a_copy();
  if (session_->progressed()) backoff_.Reset();
  if (session_->welcomed()) BlameRefusal(status);
  session_.reset();
  connected_ = false;

  const absl::Duration pause = backoff_.Next(RetryDelay(status));
  connect_at_ = now + pause;
  if (!copy) return LogEnd(status, pause, now);
  connect_at_ = now + std::max(pause, options_.backoff_max);
  if (memory_.logged.Allow("copy", now)) {
    Say(options_.log, LogLevel::kError,
        "the collector has messages of this spool that the spool never had: the directory is an "
        "old "
        "copy. Nothing is sent. Stop the agent, move the directory of spool.path away, start "
        "again");
  }
}

void Sender::BlameRefusal(const grpc::Status& status) {
  const auto code = status.error_code();
  const auto newest = session_->newest();
  if (!newest || (code != grpc::StatusCode::INVALID_ARGUMENT &&
                  code != grpc::StatusCode::RESOURCE_EXHAUSTED)) {
    return;
  }
  if (!memory_.suspicion.Refused(*newest, session_->newest_is_alone())) return;
  backoff_.Reset();  // The cause is out of the way.
  const absl::Status dropped =
      spool_->Drop(newest->sequence, newest->rows,
                   absl::StrCat("the collector refused it: ", status.error_message()));
  if (!dropped.ok()) Say(options_.log, LogLevel::kError, std::string(dropped.message()));
}

void Sender::LogEnd(const grpc::Status& status, absl::Duration pause, absl::Time now) {
  const char* const code = CodeName(status.error_code());
  if (!memory_.logged.Allow(code, now)) return;
  Say(options_.log, LogLevel::kWarning,
      absl::StrCat("stream to ", options_.address, ": ", code, " ", status.error_message(),
                   Advice(status.error_code()), "; connecting again in ",
                   absl::FormatDuration(absl::Trunc(pause, absl::Milliseconds(1)))));
}

void Sender::EndSession() {
  if (session_ == nullptr) return;
  if (!session_->finished()) session_->HalfClose();
  const absl::Time cancel_at = MonotonicNow() + kFarewell;
  while (!session_->done()) {
    Wait(MonotonicNow() < cancel_at ? cancel_at : absl::InfiniteFuture());
    if (MonotonicNow() >= cancel_at) session_->Cancel();
  }
  session_.reset();
  connected_ = false;
}

void Sender::DrainQueue() {
  wake_up_.Close();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

}  // namespace tacho::agent
