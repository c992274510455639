// One stream from Hello to its end. Each message is written only when the call can take it, and
// trimmed only when the collector has it on disk, so a stream may be cut at any moment.
#include "agent/stream/stream_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

// The spool's disk refused to be read.
constexpr absl::Duration kReadRetry = absl::Seconds(1);
// A message may be this much longer on the stream than in the spool: its layout has another id.
constexpr uint64_t kLayoutIdBytes = 8;

}  // namespace

StreamSession::StreamSession(const StreamOptions& options, const std::string& address, Spool* spool,
                             StreamMemory* memory, Transport* transport)
    : options_(options),
      address_(address),
      spool_(spool),
      memory_(memory),
      call_(address, options.security, transport) {}

StreamSession::~StreamSession() {
  if (options_.requests != nullptr) options_.requests->StreamEnded();
  memory_->acknowledged.Note(absl::InfiniteFuture(), spool_);
}

void StreamSession::Handle(IngestCall::Tag* tag, bool ok) {
  switch (call_.Handle(tag, ok)) {
    case IngestCall::Progress::kReadyToWrite:
      if (tag->operation == IngestCall::Tag::Operation::kStart) SayHello();
      break;
    case IngestCall::Progress::kReceived:
      if (call_.received().has_welcome()) OnWelcome(call_.received().welcome());
      if (call_.received().has_ack()) OnAck(call_.received().ack());
      if (call_.received().has_throttle()) OnThrottle(call_.received().throttle());
      if (call_.received().has_request() && welcomed() && options_.requests != nullptr) {
        options_.requests->Take(call_.received().request());
      }
      call_.ReadNext();
      break;
    case IngestCall::Progress::kFinished:
    case IngestCall::Progress::kNone:
      break;
  }
}

void StreamSession::SayHello() {
  v1::ClientMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_agent_id(options_.agent_id);
  hello->set_spool_generation(spool_->generation());
  hello->set_first_sequence(spool_->begin());
  if (options_.labels) {
    for (const auto& [name, value] : options_.labels()) {
      v1::Label* label = hello->add_identity();
      label->set_name(name);
      label->set_value(value);
    }
  }
  hello->set_version(options_.version);
  hello->set_several_collectors(options_.addresses.size() > 1 && !options_.one_store);
  hello->set_shards(options_.shards);
  hello->set_shard(options_.shard);
  hello->set_acknowledged_sequence(memory_->acknowledged.highest());
  if (options_.requests != nullptr) {
    for (std::string& kind : options_.requests->Kinds()) hello->add_answers(std::move(kind));
  }
  hello_sent_ = options_.now();
  hello->set_clock_unix_ns(absl::ToUnixNanos(hello_sent_));
  call_.Write(message);
}

void StreamSession::OnWelcome(const v1::Welcome& welcome) {
  if (welcomed()) return;
  uint64_t newest = welcome.durable_sequence();
  for (const v1::SequenceRange& range : welcome.durable_ahead()) {
    newest = std::max(newest, range.last());
  }
  if (newest >= spool_->end()) {
    // Messages that we spool from now on would be taken for repeats, and dropped.
    spool_is_a_copy_ = true;
    call_.Cancel();
    return;
  }
  ReportMissing(welcome);
  clock_.Marked(welcome.clock_mark(), MonotonicNow());
  if (options_.clock != nullptr) {
    options_.clock->Exchanged(hello_sent_, options_.now(),
                              absl::FromUnixNanos(welcome.clock_unix_ns()));
  }
  limits_ = welcome.limits();
  memory_->rate.Limit(0, MonotonicNow());  // The collector lifts what it asked for on this stream.
  BatchLimits batches;
  if (limits_->max_message_bytes() != 0) {
    batches.max_bytes = limits_->max_message_bytes() -
                        std::min<uint64_t>(limits_->max_message_bytes(), kLayoutIdBytes);
  }
  if (limits_->max_rows_per_batch() != 0) batches.max_rows = limits_->max_rows_per_batch();
  if (limits_->max_series_per_layout() != 0) batches.max_series = limits_->max_series_per_layout();
  spool_->LimitBatches(batches);
  layouts_.emplace(limits_->max_layouts() == 0 ? UINT32_MAX : limits_->max_layouts());

  Trim(welcome.durable_sequence());
  NoteAhead(welcome.durable_ahead());
  lanes_.emplace(options_.lanes, spool_, &memory_->pace, welcome);
  const uint64_t waiting = spool_->end() - spool_->begin();
  const uint64_t behind = lanes_->backlog_sent() ? 0 : lanes_->split() - spool_->begin();
  options_.log.Limited(log::Level::kInfo, "connected to the collector",
                       {{"collector", address_},
                        {"version", welcome.version()},
                        {"waiting_messages", waiting},
                        {"backlog_messages", behind}},
                       options_.collectors());  // Once for each of them.
}

void StreamSession::ReportMissing(const v1::Welcome& welcome) {
  const uint64_t acknowledged = memory_->acknowledged.highest();
  const MissingMessages missing = memory_->acknowledged.Compare(welcome, spool_->begin());
  if (missing.all() == 0) return;
  if (options_.missing != nullptr) options_.missing->Add(missing);
  options_.log.Error(
      "the collector no longer has what it had acknowledged: it has lost data, or another one "
      "answers at its address",
      {{"collector", address_},
       {"acknowledged_sequence", acknowledged},
       {"durable_sequence", welcome.durable_sequence()},
       {"missing_messages", missing.all()},
       {"in_the_spool_and_sent_again", missing.again},
       {"gone", missing.gone}});
}

void StreamSession::OnAck(const v1::Ack& ack) {
  if (!welcomed()) return;
  clock_.Marked(ack.clock_mark(), MonotonicNow());
  if (options_.clock != nullptr && ack.has_agent_clock()) options_.clock->Told(ack.agent_clock());
  LogRejects(ack);
  TACHO_CHECK(lanes_.has_value());
  const uint64_t on_the_way = lanes_->on_the_way();
  if (!lanes_->Durable(ack.durable_sequence(), ack.durable_ahead())) {
    // Trimming by it would lose what only this spool has.
    options_.log.Limited(log::Level::kError,
                         "the collector acknowledges what was not sent; ending the stream",
                         {{"durable_sequence", ack.durable_sequence()}}, 1);
    call_.Cancel();
    return;
  }
  memory_->acknowledged.Raise(ack.durable_sequence());
  memory_->acknowledged.Note(MonotonicNow(), spool_);
  Trim(ack.durable_sequence());
  NoteAhead(ack.durable_ahead());
  progressed_ = progressed_ || lanes_->on_the_way() < on_the_way;
  // The second says something only if nothing was sent after the highest.
  all_taken_ =
      lanes_->on_the_way() == 0 || (last_is_sent_ && last_->sequence == lanes_->highest_sent() &&
                                    ack.accepted_sequence() >= last_->sequence);
  if (last_is_sent_ && all_taken_) {
    memory_->suspicion.Passed(*last_);
  }
  if (lanes_->backlog_through()) memory_->suspicion.BacklogPassed();
}

void StreamSession::Trim(uint64_t watermark) {
  // Should the disk refuse, a later acknowledgement trims the same.
  if (absl::Status status = spool_->Trim(watermark + 1); !status.ok()) {
    LogTrouble("cannot trim the spool", status);
  }
}

void StreamSession::NoteAhead(const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead) {
  if (ahead.empty() && !ahead_noted_) return;
  spool_->SetDurableAhead({ahead.begin(), ahead.end()});
  ahead_noted_ = !ahead.empty();
}

void StreamSession::LogRejects(const v1::Ack& ack) {
  if (options_.refused != nullptr) options_.refused->Add(ack);
  memory_->refusals.Add(ack, options_.now(),
                        [this](const std::string& line) { options_.log.Warn(line); });
}

void StreamSession::OnThrottle(const v1::Throttle& throttle) {
  const absl::Time now = MonotonicNow();
  memory_->rate.Limit(throttle.max_rows_per_second(), now);
  memory_->rate.PauseFor(absl::Milliseconds(throttle.pause_ms()), now);
  options_.log.Limited(log::Level::kWarn, "the collector asks the agent to send less",
                       {{"max_rows_per_second", throttle.max_rows_per_second()},
                        {"pause_ms", throttle.pause_ms()},
                        {"reason", throttle.reason()}},
                       1);
}

bool StreamSession::MaySend() {
  next_pump_ = absl::InfiniteFuture();
  if (!welcomed() || finished() || !call_.can_write()) return false;
  if (memory_->suspicion.OneAtATime() && !all_taken_) return false;
  if (MonotonicNow() < memory_->rate.next()) {
    next_pump_ = memory_->rate.next();
    return false;
  }
  return true;
}

void StreamSession::SendReports() {
  if (options_.requests == nullptr || !welcomed() || finished()) return;
  while (call_.can_write()) {
    auto report = options_.requests->NextReport();
    if (!report.has_value()) return;
    v1::ClientMessage message;
    *message.mutable_report() = *std::move(report);
    call_.Write(message);
  }
}

absl::Status StreamSession::Pump() {
  SendReports();
  while (MaySend()) {
    TACHO_RETURN_IF_ERROR(Choose());
    if (lanes_->front() == nullptr) break;
    if (absl::Status status = SendFront(); !status.ok()) {
      LogTrouble("cannot give a message up", status);
      next_pump_ = MonotonicNow() + kReadRetry;
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status StreamSession::Choose() {
  const Lane first = memory_->suspicion.Suspects(Lane::kBacklog) ? Lane::kBacklog : Lane::kFresh;
  absl::Status status = lanes_->Choose(MonotonicNow(), first);
  next_pump_ = lanes_->next_choice();
  if (status.ok() || absl::IsDataLoss(status)) return status;
  LogTrouble("cannot read the spool", status);
  next_pump_ = std::min(next_pump_, MonotonicNow() + kReadRetry);
  return absl::OkStatus();
}

absl::Status StreamSession::SendFront() {
  TACHO_CHECK(limits_.has_value() && layouts_.has_value() && lanes_->front() != nullptr);
  Spool::Entry& front = *lanes_->front();
  const uint32_t layout = front.message.layout();
  const uint64_t bytes = front.message.bytes().size();
  const uint64_t max_bytes = limits_->max_message_bytes();
  if (max_bytes != 0 && bytes + kLayoutIdBytes > max_bytes) {
    return GiveUpFront(absl::StrCat("it has ", bytes, " bytes, the collector takes ", max_bytes,
                                    " (ingest.max_message_bytes)"));
  }
  if (memory_->suspicion.IsHopeless(layout)) {
    return GiveUpFront("the collector refuses its layout");
  }
  if (!memory_->denied.empty()) {
    const std::string job = spool_->SourceOf(front.message).job();
    const std::string* why = memory_->denied.Find(job, MonotonicNow());
    if (why != nullptr) return GiveUpFront(*why);
  }
  uint32_t id = 0;
  if (front.message.is_batch()) {
    const StreamLayouts::Use use = layouts_->Find(layout);
    if (use.define) return SendLayout(layout, use.id);
    id = use.id;
  }

  NoteTried(front, layout);
  last_is_sent_ = true;
  all_taken_ = false;
  const absl::Time now = MonotonicNow();
  memory_->rate.Sent(last_->rows, now);
  SpooledMessage message = lanes_->Sent(last_->rows, now).message;
  const std::string clock = TakeClockReport(bytes, now);
  if (message.is_batch()) {
    call_.WriteBatch(std::move(message), id, clock);
  } else {
    call_.Write(std::move(message), clock);
  }
  return absl::OkStatus();
}

std::string StreamSession::TakeClockReport(uint64_t bytes, absl::Time now) {
  const uint64_t max_bytes = limits_->max_message_bytes();
  const bool fits = max_bytes == 0 || bytes + kLayoutIdBytes + ClockReports::kMaxBytes <= max_bytes;
  if (!clock_.IsDue(now) || !fits) return "";
  v1::ClientMessage message;
  *message.mutable_clock() = clock_.Take(now, options_.now());
  return message.SerializeAsString();
}

absl::Status StreamSession::SendLayout(uint32_t layout, uint32_t id) {
  auto definition = spool_->FindLayout(layout);
  if (!definition.ok()) return GiveUpFront(std::string(definition.status().message()));
  const uint32_t max_series = limits_->max_series_per_layout();
  if (max_series != 0 && static_cast<uint32_t>(definition->series_size()) > max_series) {
    return GiveUpFront(absl::StrCat("its layout has ", definition->series_size(),
                                    " series, the collector takes ", max_series,
                                    " (ingest.max_series_per_layout)"));
  }
  v1::ClientMessage message;
  *message.mutable_layout() = *std::move(definition);
  message.mutable_layout()->set_id(id);
  const uint64_t bytes = message.ByteSizeLong();
  const uint64_t max_bytes = limits_->max_message_bytes();
  // The spool cuts what it takes in; this is from before the collector lowered its limit.
  if (max_bytes != 0 && bytes > max_bytes) {
    return GiveUpFront(absl::StrCat("its layout has ", bytes, " bytes, the collector takes ",
                                    max_bytes, " (ingest.max_message_bytes)"));
  }
  call_.Write(message);

  NoteTried(*lanes_->front(), layout);
  lanes_->Hold();
  return absl::OkStatus();
}

// A refused layout is as good as its refused batch.
void StreamSession::NoteTried(const Spool::Entry& entry, uint32_t layout) {
  TACHO_CHECK(entry.sequence != 0);
  last_ = {.sequence = entry.sequence,
           .layout = layout,
           .rows = entry.message.rows(),
           .lane = lanes_->lane()};
  last_is_alone_ = all_taken_;
  last_is_sent_ = false;
  uint64_t& tried = tried_[static_cast<size_t>(last_->lane)];
  tried = std::max(tried, entry.sequence);
}

absl::Status StreamSession::GiveUpFront(const std::string& reason) {
  Spool::Entry& front = *lanes_->front();
  if (front.message.is_batch()) layouts_->Forget(front.message.layout());
  absl::Status status = spool_->Drop(front.sequence, front.message.rows(), reason);
  if (!status.ok()) return status;
  TACHO_ASSIGN_OR_RETURN(auto entries, spool_->Read(front.sequence, 1));
  if (!entries.empty() && entries.front().sequence == front.sequence) {
    front = std::move(entries.front());
  } else {
    lanes_->GaveUp();
  }
  return absl::OkStatus();
}

void StreamSession::HalfClose() {
  if (call_.can_write()) {
    call_.HalfClose();
  } else {
    call_.Cancel();
  }
}

void StreamSession::LogTrouble(const char* message, const absl::Status& status) const {
  options_.log.Limited(log::Level::kWarn, message, {{"reason", status.message()}}, 1);
}

}  // namespace tacho::agent
