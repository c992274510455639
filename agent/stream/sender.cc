// The loop of the sender's thread: sync the spool, keep one stream going, connect again when it
// ends. One thread and one transport do everything, so no state of a stream needs a lock.
#include "agent/stream/sender.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "agent/stream/grpc_transport.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/rpc/retry_delay.h"

namespace tacho::agent {
namespace {

// A collector that ends a stream politely needs no longer than this.
constexpr absl::Duration kFarewell = absl::Milliseconds(500);
// The same when the agent stops for nothing but to try another collector: what is acknowledged on
// this stream need not be sent to both.
constexpr absl::Duration kLongFarewell = absl::Seconds(5);
// How long to try a collector while another is known to work.
constexpr absl::Duration kHurriedWelcome = absl::Seconds(3);
// The longest pause before an address is tried again where the owner of a store may have moved to
// it: what it costs a takeover. Most of these calls end at a closed port.
constexpr absl::Duration kLongestSearch = absl::Seconds(5);

std::function<double()> UsualRandom() {
  auto generator = std::make_shared<absl::BitGen>();
  return [generator] { return absl::Uniform<double>(*generator, 0, 1); };
}

std::unique_ptr<Transport> MakeTransport(const StreamOptions& options) {
  if (options.transport) return options.transport();
  return std::make_unique<GrpcTransport>();
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

// Says what to do about a job that this agent may not write.
constexpr char kDeniedAdvice[] =
    "let this agent's token or certificate write the job (jobs of its entry in auth.tokens_file "
    "or of auth.certificates), or have it recorded under another name";

bool IsAboutMessage(const grpc::Status& status) {
  const auto code = status.error_code();
  // PERMISSION_DENIED after Welcome is about a job: a trainer that names one that this agent may
  // not write must not hold up all others.
  return code == grpc::StatusCode::INVALID_ARGUMENT ||
         code == grpc::StatusCode::RESOURCE_EXHAUSTED ||
         code == grpc::StatusCode::PERMISSION_DENIED;
}

// Says what a person can do about it; empty if waiting is all.
std::string Advice(grpc::StatusCode code, bool about_message) {
  if (about_message && code == grpc::StatusCode::PERMISSION_DENIED) {
    return absl::StrCat("; what is of that job is given up, all else goes on: ", kDeniedAdvice);
  }
  switch (code) {
    case grpc::StatusCode::ALREADY_EXISTS:
      return "; another agent is connected under this identity.agent_id: give each its own, or "
             "stop "
             "the other one";
    case grpc::StatusCode::UNIMPLEMENTED:
      return "; is it a tacho-collector of this version?";
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
      transport_(MakeTransport(options_)),
      choice_(
          {.collectors = options_.addresses.size(),
           .backoff_min = options_.backoff_min,
           .backoff_max = options_.one_store ? std::min(options_.backoff_max, kLongestSearch)
                                             : options_.backoff_max,
           .return_after = options_.one_store ? absl::InfiniteDuration() : options_.return_after,
           .random = options_.random ? options_.random : UsualRandom()}),
      memories_(options_.one_store ? 1 : options_.addresses.size()),
      sync_pause_(std::min(kFirstSyncPause, options_.sync_interval)) {
  for (size_t i = 0; i < memories_.size(); ++i) {
    memories_[i].pace = BacklogPace(options_.backlog_rows_per_second);
    memories_[i].acknowledged.Load(*spool_, options_.agent_id, options_.addresses[i]);
  }
}

Sender::~Sender() { Stop(absl::ZeroDuration()); }

void Sender::Start() {
  TACHO_CHECK(!thread_.joinable() && !options_.addresses.empty());
  spool_->SetListener([this] {
    if (!sync_is_awaited_.exchange(true)) transport_->Ring();
  });
  if (options_.requests != nullptr) {
    options_.requests->SetListener([this] { transport_->Ring(); });
  }
  thread_ = std::thread([this] { Run(); });
}

void Sender::BeginStop(absl::Duration flush) {
  {
    absl::MutexLock lock(&mutex_);
    stop_by_ = std::min(stop_by_, MonotonicNow() + flush);
  }
  transport_->Ring();
}

void Sender::Stop(absl::Duration flush) {
  BeginStop(flush);
  if (!thread_.joinable()) return;
  thread_.join();
  spool_->SetListener(nullptr);
  if (options_.requests != nullptr) options_.requests->SetListener(nullptr);
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
  transport_->Shutdown();
}

void Sender::RunOnce(absl::Time now) {
  if (session_ != nullptr && session_->finished()) OnStreamEnd(now);
  if (session_ == nullptr && !broken_ && (now >= choice_.begin_at() || stop_at_once_)) Dial(now);
  if (session_ == nullptr) return;

  NoteWelcome(now);
  if (session_->progressed()) choice_.Progressed();
  if (!connected_ && now >= welcome_by_) session_->Cancel();
  ReturnIfDue(now);
  if (absl::Status status = session_->Pump(); !status.ok()) {
    broken_ = true;
    session_->Cancel();
    if (options_.broken) options_.broken(status);
  }
}

void Sender::NoteWelcome(absl::Time now) {
  if (session_->welcomed() && !connected_) {
    choice_.Welcomed(now);
    told_of_lists_.clear();
  }
  connected_ = session_->welcomed();
}

void Sender::Dial(absl::Time now) {
  last_attempt_made_ = stopping_;
  stop_at_once_ = false;
  TACHO_CHECK(session_ == nullptr);
  absl::Duration patience = options_.welcome_timeout;
  if (choice_.hurried()) patience = std::min(patience, kHurriedWelcome);
  if (options_.one_store)
    patience = std::min(patience, kLongestSearch);  // Its machine may be lost.
  welcome_by_ = now + patience;
  farewell_by_ = absl::InfiniteFuture();
  session_ =
      std::make_unique<StreamSession>(options_, address(), spool_, &memory(), transport_.get());
}

void Sender::ReturnIfDue(absl::Time now) {
  if (farewell_by_ != absl::InfiniteFuture()) {
    if (now >= farewell_by_) session_->Cancel();
    return;
  }
  if (now < choice_.return_at() || stopping_) return;
  // Messages that were sent ahead of a backlog are not trimmed yet: another collector would get it
  // too.
  if (!session_->caught_up()) return choice_.PutReturnOff(now);
  farewell_by_ = now + kLongFarewell;
  session_->HalfClose();
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
      options_.log.Error("cannot sync the spool", {{"reason", status.message()}});
    }
    stop_at_once_ = true;  // One more attempt, if there is no stream.
  }
  const bool delivered = spool_->begin() == spool_->end();
  const bool out_of_reach = session_ == nullptr && last_attempt_made_;
  return delivered || out_of_reach || broken_ || now >= stop_by;
}

void Sender::SyncIfDue(absl::Time now) {
  if (spool_->synced_end() >= spool_->end()) {
    sync_is_awaited_ = false;
    // Rows that came between the two did not ring.
    if (spool_->synced_end() >= spool_->end()) return;
    sync_is_awaited_ = true;
  }
  if (now < last_sync_ + sync_pause_ && !stopping_) return;
  last_sync_ = now;
  sync_pause_ = std::min(2 * sync_pause_, options_.sync_interval);
  sync_is_awaited_ = false;  // Before it: what comes later rings again.
  absl::Status status = spool_->Sync();
  if (!status.ok()) {
    options_.log.Limited(log::Level::kError, "cannot sync the spool",
                         {{"reason", status.message()}}, 1);
  }
}

absl::Time Sender::NextWake(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  if (spool_->synced_end() < spool_->end()) {
    next = std::max(last_sync_ + sync_pause_, now);
  }
  if (stopping_) next = std::min(next, now + kFarewell);  // To look at the deadline.
  if (session_ == nullptr) return broken_ ? next : std::min(next, choice_.begin_at());
  if (!session_->welcomed()) {
    next = std::min(next, welcome_by_);
  } else if (farewell_by_ != absl::InfiniteFuture()) {
    next = std::min(next, farewell_by_);
  } else if (!stopping_) {
    next = std::min(next, choice_.return_at());
  }
  return std::min(next, session_->next_pump());
}

// Waits for one event, then takes those that are there already.
void Sender::Wait(absl::Time until) {
  for (auto event = transport_->Next(until); event.has_value();
       event = transport_->Next(absl::InfinitePast())) {
    Handle(*event);
  }
}

void Sender::Handle(const Transport::Event& event) {
  if (event.tag == nullptr) return;  // It rang: the loop looks at everything.
  TACHO_CHECK(session_ != nullptr);
  session_->Handle(static_cast<IngestCall::Tag*>(event.tag), event.ok);
}

void Sender::OnStreamEnd(absl::Time now) {
  if (!session_->done()) return;  // Its last tags come at once.
  const grpc::Status status = session_->status();
  const bool copy = session_->spool_is_a_copy();
  const bool returning = farewell_by_ != absl::InfiniteFuture() && status.ok();
  NoteWelcome(now);
  if (session_->progressed()) choice_.Progressed();
  const bool about_message = session_->welcomed() && IsAboutMessage(status);
  if (about_message) {
    BlameRefusal(status, now);
  } else {
    memory().denied.StreamEnded();
  }
  const std::string ended = address();
  session_.reset();
  connected_ = false;

  if (returning) {
    choice_.Returned(now);
    options_.log.Info("left a collector to see whether an earlier one answers",
                      {{"left", ended}, {"trying", address()}});
    return;
  }
  // Trying again soon would not help: an old copy stays one.
  choice_.Ended(now, copy ? options_.backoff_max : RetryDelay(status));
  if (ToldOfLists(status)) return;
  if (!copy) return LogEnd(status, about_message, ended, choice_.begin_at() - now);
  options_.log.Limited(
      log::Level::kError,
      "the collector has messages of this spool that the spool never had: the directory is an old "
      "copy. Nothing is sent. Stop the agent, move the directory of spool.path away, start again",
      {}, 1);
}

void Sender::BlameRefusal(const grpc::Status& status, absl::Time now) {
  const auto last = session_->last();
  if (!last) return;
  const bool alone = session_->last_is_alone();
  if (!memory().suspicion.Refused(*last, alone, session_->tried())) return;
  choice_.Progressed();  // The cause is out of the way.
  const bool denied = status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
  const std::string reason =
      denied ? NoteDenied(*last, status, now)
             : absl::StrCat("the collector refused it: ", status.error_message());
  const absl::Status dropped = spool_->Drop(last->sequence, last->rows, reason);
  if (!dropped.ok()) {
    options_.log.Error("cannot give a refused message up", {{"reason", dropped.message()}});
  }
}

std::string Sender::NoteDenied(const Suspicion::Message& message, const grpc::Status& status,
                               absl::Time now) {
  std::string reason =
      absl::StrCat("the collector refused it: ", status.error_message(), "; ", kDeniedAdvice);
  const auto entries = spool_->Read(message.sequence, 1);
  if (!entries.ok() || entries->empty() || entries->front().sequence != message.sequence) {
    return reason;
  }
  const std::string job = spool_->SourceOf(entries->front().message).job();
  if (!job.empty()) memory().denied.Deny(job, reason, now);
  return reason;
}

bool Sender::ToldOfLists(const grpc::Status& status) {
  if (options_.shards == 0 || status.error_code() != grpc::StatusCode::FAILED_PRECONDITION) {
    return false;
  }
  if (told_of_lists_ == status.error_message()) return true;
  told_of_lists_ = status.error_message();
  return false;
}

void Sender::LogEnd(const grpc::Status& status, bool about_message, const std::string& ended,
                    absl::Duration pause) {
  const std::string next = address() == ended ? "connecting again" : "connecting to " + address();
  const absl::Duration left = std::max(pause, absl::ZeroDuration());
  options_.log.Limited(
      log::Level::kWarn,
      absl::StrCat("the stream to the collector ended: ", CodeName(status.error_code())),
      {{"collector", ended},
       {"reason", absl::StrCat(status.error_message(), Advice(status.error_code(), about_message))},
       {"next", absl::StrCat(next, " in ",
                             absl::FormatDuration(absl::Trunc(left, absl::Milliseconds(1))))}},
      options_.collectors());
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

}  // namespace tacho::agent
