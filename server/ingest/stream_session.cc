// Each message of a stream goes through admission, is charged to the quotas, and reaches the store
// in one call, which settles it later. Whatever the limits refuse of a message is reported in an
// Ack: the message itself becomes durable all the same, or the agent would send it for ever.
#include "server/ingest/stream_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::ingest {
namespace {

// Stands for what a message without rows keeps busy while it waits for the disk.
constexpr uint64_t kSmallMessageBytes = 1024;

// Makes a message durable although nothing of it is stored.
constexpr storage::SequenceRange kNothingLost = {0, 0};

uint64_t BytesOf(const storage::RowsView& rows) {
  return rows.times.size_bytes() + rows.steps.size_bytes() + rows.values.size_bytes();
}

// A message without rows is charged as so many.
uint64_t SamplesOf(const google::protobuf::Message& message) {
  return 1 + message.ByteSizeLong() / sizeof(double);
}

// How many sequences of first..last are not durable.
uint64_t CountMissing(const storage::SequenceSet& durable, uint64_t first, uint64_t last) {
  first = std::max(first, durable.watermark() + 1);
  if (first > last) return 0;
  uint64_t missing = last - first + 1;
  for (const storage::SequenceRange& ahead : durable.ahead()) {
    const uint64_t from = std::max(first, ahead.first);
    const uint64_t to = std::min(last, ahead.last);
    if (from <= to) missing -= to - from + 1;
  }
  return missing;
}

// Why something is not durable that the agent knows to be acknowledged.
const char* WhyMissing(const storage::SequenceSet& durable) {
  return durable.watermark() == 0 && durable.ahead().empty()
             ? "acknowledged at this collector's address, but this store does not know the agent's "
               "spool: the store is another, an older copy, or has forgotten the agent"
             : "acknowledged by this collector, whose store has lost it since";
}

// An acknowledgement that waits for the bucket takes a second: an agent's usual 32 messages would
// be 32 a second.
constexpr uint32_t kBacklogMessagesWithBucket = 1024;

absl::Status RegistrationFailure(const absl::Status& status) {
  if (absl::IsInvalidArgument(status))
    return errors::InvalidFieldError("layout.series", status.message());
  const std::string text = absl::StrCat("layout.series: ", status.message());
  if (absl::IsUnavailable(status)) return errors::ErrorOf(errors::Failure::kDiskRefuses, text);
  return absl::Status(status.code(), text);
}

}  // namespace

StreamSession::StreamSession(const SessionContext* context, std::shared_ptr<AckCoalescer> acks,
                             uint64_t stream, std::function<void()> evict,
                             security::RightsPtr rights)
    : context_(*context),
      acks_(std::move(acks)),
      stream_(stream),
      evict_(std::move(evict)),
      rights_(std::move(rights)),
      refusals_({.admission = context_.admission,
                 .metrics = context_.metrics,
                 .limiting = context_.limiting,
                 .acks = acks_.get(),
                 .log = &context_.log,
                 .now = context_.now}) {
  TACHO_CHECK(context_.store != nullptr && context_.admission != nullptr &&
              context_.agents != nullptr && context_.metrics != nullptr);
  TACHO_CHECK(context_.quotas != nullptr && context_.limiting != nullptr && acks_ != nullptr);
}

absl::StatusOr<std::optional<v1::Welcome>> StreamSession::Handle(
    const v1::ClientMessage& untrusted) {
  wait_ = {};
  if (hello_seen_) heard_.Heard(absl::ToUnixNanos(context_.now()));
  TACHO_RETURN_IF_ERROR(context_.admission->CheckStream(untrusted, hello_seen_));
  if (untrusted.has_clock()) HandleClock(untrusted.clock());
  if (!untrusted.has_batch()) return HandleOther(untrusted);
  const v1::Batch& batch = untrusted.batch();
  const auto known = layouts_.find(batch.layout());
  StreamLayout* const layout = known == layouts_.end() ? nullptr : &known->second;
  TACHO_ASSIGN_OR_RETURN(const auto sent, context_.admission->AdmitBatch(batch, layout));

  if (clock_ != nullptr) clock_->SawRow(sent.times.back());
  selection_.Select(sent, *layout, context_.admission->Window());
  if (selection_.future_rows() + selection_.old_rows() > 0) TACHO_RETURN_IF_ERROR(CheckClock());
  rows_ += sent.times.size();
  samples_ += sent.values.size();
  Charge(sent.values.size(), layout->job_bucket.get());
  const storage::RowsView& rows = selection_.rows();
  refusals_.BatchSelected(*layout, selection_, sent.times.size());
  origin_.sequence = batch.sequence();
  if (layout->id == 0 || rows.times.empty()) {
    // Nothing is left to store but that this sequence is done with.
    context_.store->AppendGap(origin_, kNothingLost, sent.times.size(), "every sample was refused",
                              Accept(origin_.sequence, kSmallMessageBytes));
    return std::nullopt;
  }
  TACHO_ASSIGN_OR_RETURN(const auto stored, FindStored(layout));
  context_.metrics->BatchAdmitted(rows.times.size(), rows.values.size());
  context_.store->AppendRows(origin_, stored, rows, Accept(origin_.sequence, BytesOf(rows)));
  return std::nullopt;
}

absl::StatusOr<std::optional<v1::Welcome>> StreamSession::HandleOther(
    const v1::ClientMessage& untrusted) {
  absl::Status status;
  switch (untrusted.message_case()) {
    case v1::ClientMessage::kHello: {
      TACHO_ASSIGN_OR_RETURN(auto welcome, HandleHello(untrusted.hello()));
      return std::optional<v1::Welcome>(std::move(welcome));
    }
    case v1::ClientMessage::kLayout:
      status = HandleLayout(untrusted.layout());
      break;
    case v1::ClientMessage::kEvent:
      status = HandleEvent(untrusted.event());
      break;
    case v1::ClientMessage::kAttributes:
      status = HandleAttributes(untrusted.attributes());
      break;
    case v1::ClientMessage::kGap:
      status = HandleGap(untrusted.gap());
      break;
    case v1::ClientMessage::kReport:
      Charge(SamplesOf(untrusted.report()), nullptr);
      if (context_.asker != nullptr) context_.asker->Heard(stream_, untrusted.report());
      break;
    case v1::ClientMessage::kBatch:
    case v1::ClientMessage::MESSAGE_NOT_SET:
      break;  // Handle() and admission have seen to them.
  }
  TACHO_RETURN_IF_ERROR(status);
  return std::nullopt;
}

absl::StatusOr<v1::Welcome> StreamSession::HandleHello(const v1::Hello& untrusted) {
  TACHO_RETURN_IF_ERROR(context_.admission->CheckHello(untrusted));
  // Before the agent's id is claimed for whoever is here by mistake.
  TACHO_RETURN_IF_ERROR(context_.admission->CheckShard(untrusted));
  TACHO_RETURN_IF_ERROR(context_.admission->CheckRights(ClaimAgentId(untrusted.agent_id())));
  TACHO_RETURN_IF_ERROR(
      context_.agents->Claim(untrusted.agent_id(), {.generation = untrusted.spool_generation(),
                                                    .owner = rights_->owner(),
                                                    .stream = stream_,
                                                    .evict = evict_}));
  hello_seen_ = true;
  origin_.agent_id = untrusted.agent_id();
  origin_.generation = untrusted.spool_generation();
  agent_bucket_ = context_.quotas->BucketOfAgent(origin_.agent_id);
  definitions_ = context_.quotas->DefinitionsOfAgent(origin_.agent_id, DefinitionRate());
  acks_->SetAgent(origin_.agent_id, origin_.generation);
  refusals_.SetAgent(origin_.agent_id);
  const auto durable = context_.store->DurableSequences(origin_.agent_id, origin_.generation);
  ReportMissing(durable, untrusted);
  CloseHoles(durable, untrusted);

  const absl::Time now = context_.now();
  std::optional<double> offset_seconds;
  if (untrusted.clock_unix_ns() != 0) {
    const absl::Duration offset = absl::FromUnixNanos(untrusted.clock_unix_ns()) - now;
    context_.metrics->ClockOffsetSeen(offset);
    offset_seconds = absl::ToDoubleSeconds(offset);
    if (context_.clocks != nullptr) {
      clock_ =
          context_.clocks->Join(origin_.agent_id, absl::FromUnixNanos(untrusted.clock_unix_ns()));
    }
  }
  imports_ = untrusted.imports();
  if (context_.ledger != nullptr && !imports_) {
    heard_ = context_.ledger->Open(origin_.agent_id, absl::ToUnixNanos(now), offset_seconds);
  }
  if (context_.asker != nullptr && send_ && !imports_) {
    context_.asker->Join(stream_, {untrusted.answers().begin(), untrusted.answers().end()}, send_);
  }
  const auto& limits = context_.admission->limits();
  v1::Welcome welcome;
  SetDurable(durable, &welcome);
  welcome.mutable_limits()->set_max_message_bytes(
      static_cast<uint32_t>(limits.max_message_bytes()));
  welcome.mutable_limits()->set_max_rows_per_batch(limits.max_rows_per_batch());
  welcome.mutable_limits()->set_max_layouts(limits.max_layouts_per_stream());
  welcome.mutable_limits()->set_max_series_per_layout(limits.max_series_per_layout());
  if (context_.quotas->waits_for_bucket()) {
    welcome.mutable_limits()->set_max_backlog_messages(kBacklogMessagesWithBucket);
  }
  welcome.set_clock_unix_ns(absl::ToUnixNanos(now));
  welcome.set_echo_unix_ns(untrusted.clock_unix_ns());
  welcome.set_version(context_.version);
  return welcome;
}

void StreamSession::HandleClock(const v1::ClockReport& untrusted) {
  if (clock_ == nullptr) return;
  const auto seen = clock_->Reported(
      {.mark = untrusted.mark(),
       .held = absl::Nanoseconds(std::min<uint64_t>(untrusted.held_ns(), INT64_MAX)),
       .said = absl::FromUnixNanos(untrusted.clock_unix_ns())});
  if (!seen.has_value()) return;
  const auto& [ahead, uncertainty] = seen->offset;
  context_.metrics->ClockMeasured(uncertainty);
  heard_.ClockSeen(absl::ToDoubleSeconds(ahead), absl::ToDoubleSeconds(uncertainty));
  clock_seen_.emplace();
  clock_seen_->set_ahead_ns(absl::ToInt64Nanoseconds(ahead));
  clock_seen_->set_uncertainty_ns(static_cast<uint64_t>(absl::ToInt64Nanoseconds(uncertainty)));
  if (!seen->step.has_value()) return;
  context_.metrics->ClockStepped(*seen->step > absl::ZeroDuration());
  context_.metrics->ClockOffsetSeen(ahead);
  context_.log.Limited(log::Level::kWarn, "the clock of an agent was set",
                       {{"agent", origin_.agent_id},
                        {"by", absl::FormatDuration(*seen->step)},
                        {"ahead", absl::FormatDuration(ahead)}});
}

absl::Status StreamSession::ClaimAgentId(const std::string& agent_id) const {
  TACHO_RETURN_IF_ERROR(rights_->CheckAgentId(agent_id));
  const std::string& claimant = rights_->owner();
  if (claimant.empty()) return absl::OkStatus();
  const std::string owner =
      context_.store->ClaimAgent(agent_id, claimant, rights_->IsGivenAgentIds());
  return owner == claimant ? absl::OkStatus() : rights_->RefuseAgentId(agent_id, owner);
}

void StreamSession::CloseHoles(const storage::SequenceSet& durable, const v1::Hello& hello) {
  const uint64_t first_sequence = hello.first_sequence();
  const uint64_t acknowledged = hello.acknowledged_sequence();
  const bool counts = !hello.several_collectors();
  const char* const reason = counts
                                 ? "no longer in the agent's spool"
                                 : "no longer in the agent's spool: another collector may have it";
  const auto close = [&](storage::SequenceRange lost) {
    TACHO_CHECK(lost.first <= lost.last);
    if (lost.first <= acknowledged) {
      const uint64_t last = std::min(lost.last, acknowledged);
      CloseHole({lost.first, last}, WhyMissing(durable), true);
      if (last == lost.last) return;
      lost.first = last + 1;
    }
    CloseHole(lost, reason, counts);
  };
  uint64_t next = durable.watermark() + 1;
  for (const storage::SequenceRange& ahead : durable.ahead()) {
    if (next >= first_sequence) return;
    close({next, std::min(ahead.first, first_sequence) - 1});
    next = ahead.last + 1;
  }
  if (next < first_sequence) close({next, first_sequence - 1});
}

void StreamSession::CloseHole(storage::SequenceRange lost, absl::string_view reason, bool counts) {
  origin_.sequence = 0;
  if (counts) context_.metrics->LossReported(lost.last - lost.first + 1, 0);
  context_.store->AppendGap(origin_, lost, 0, reason, Accept(0, kSmallMessageBytes));
}

void StreamSession::ReportMissing(const storage::SequenceSet& durable, const v1::Hello& hello) {
  const uint64_t acknowledged = hello.acknowledged_sequence();
  const uint64_t first_sequence = hello.first_sequence();
  const uint64_t gone = CountMissing(durable, 1, std::min(acknowledged, first_sequence - 1));
  const uint64_t again = CountMissing(durable, first_sequence, acknowledged);
  if (gone + again == 0) return;
  context_.metrics->AcknowledgedMissing(gone, again);
  context_.log.Limited(log::Level::kError, "messages that were acknowledged are missing",
                       {{"agent", origin_.agent_id},
                        {"reason", WhyMissing(durable)},
                        {"acknowledged_sequence", acknowledged},
                        {"durable_sequence", durable.watermark()},
                        {"gone", gone},
                        {"sent_again", again}});
}

absl::Status StreamSession::CheckClock() const {
  if (context_.clock_watch == nullptr) return absl::OkStatus();
  const std::string doubt = context_.clock_watch->DoubtNow();
  if (doubt.empty()) return absl::OkStatus();
  return errors::ErrorOf(errors::Failure::kClockDoubted, doubt);
}

absl::Status StreamSession::CheckMay(const std::string& job, absl::string_view field) const {
  return context_.admission->CheckRights(rights_->CheckJob(job, field));
}

void StreamSession::NoteHost(const std::string& host) {
  if (context_.asker != nullptr && !imports_) context_.asker->Serves(stream_, host);
  if (context_.ledger == nullptr) return;
  if (imports_) {
    context_.ledger->Imports(host);
  } else {
    context_.ledger->Serves(heard_, host);
  }
}

absl::Status StreamSession::HandleLayout(const v1::Layout& untrusted) {
  const auto replaced = layouts_.find(untrusted.id());
  const uint64_t before = replaced == layouts_.end() ? 0 : replaced->second.width;
  TACHO_CHECK(columns_ >= before);
  const uint64_t others = columns_ - before;
  TACHO_ASSIGN_OR_RETURN(auto admitted, context_.admission->AdmitLayout(untrusted, others));
  constexpr absl::string_view kField = "layout.source.job";
  const v1::Source& source = untrusted.source();
  TACHO_RETURN_IF_ERROR(CheckMay(source.job(), kField));
  if (!untrusted.copy()) TACHO_RETURN_IF_ERROR(context_.admission->CheckShard(source, kField));
  NoteHost(untrusted.source().host());
  storage::Registration registration;
  if (!admitted.definition.series.empty()) {
    const auto pause = [this] {
      if (context_.definitions != nullptr) context_.definitions->Pause();
    };
    auto registered = context_.store->RegisterLayout(admitted.definition, pause);
    if (!registered.ok()) return RegistrationFailure(registered.status());
    registration = *std::move(registered);
  }
  const std::string& job = admitted.definition.source.job;
  StreamLayout layout = StreamLayout::Of(admitted, std::move(registration));
  refusals_.LayoutDefined(job, layout);
  layout.job_bucket = context_.quotas->BucketOfJob(job);
  Charge(layout.width, nullptr);  // As much work as a row, at least.
  ChargeDefinitions(layout.width);
  columns_ = others + layout.width;
  layouts_[untrusted.id()] = std::move(layout);
  return absl::OkStatus();
}

absl::StatusOr<storage::LayoutPtr> StreamSession::FindStored(StreamLayout* layout) const {
  TACHO_CHECK(layout->id != 0);
  if (storage::LayoutPtr known = layout->layout.lock()) return known;
  auto found = context_.store->FindLayout(layout->job, layout->id);
  if (absl::IsNotFound(found.status())) {
    return absl::FailedPreconditionError("the layout's job has expired: define the layout again");
  }
  if (found.ok()) layout->layout = *found;
  return found;
}

bool StreamSession::AdmitJob(const std::string& job) {
  if (context_.store->HasRoomForJob(job)) return true;
  if (refusals_.JobWithoutRoom(job) == storage::LimitAction::kObserve) return true;
  context_.store->AppendGap(origin_, kNothingLost, 0, "the collector knows as many jobs as it may",
                            Accept(origin_.sequence, kSmallMessageBytes));
  return false;
}

absl::Status StreamSession::HandleEvent(const v1::Event& untrusted) {
  const auto event = context_.admission->AdmitEvent(untrusted);
  if (!event.ok()) return event.status();
  constexpr absl::string_view kField = "event.source.job";
  TACHO_RETURN_IF_ERROR(CheckMay(untrusted.source().job(), kField));
  TACHO_RETURN_IF_ERROR(context_.admission->CheckShard(untrusted.source(), kField));
  const TimeWindow window = context_.admission->Window();
  const bool outside = event->time_ns > window.newest_ns || event->time_ns < window.oldest_ns;
  if (outside) TACHO_RETURN_IF_ERROR(CheckClock());
  Charge(SamplesOf(untrusted), nullptr);
  origin_.sequence = untrusted.sequence();
  if (outside) {
    refusals_.EventRefused(*event, event->time_ns > window.newest_ns);
    context_.store->AppendGap(origin_, kNothingLost, 0, "the event was refused",
                              Accept(origin_.sequence, kSmallMessageBytes));
    return absl::OkStatus();
  }
  if (!AdmitJob(event->source.job)) return absl::OkStatus();
  context_.store->AppendEvent(origin_, *event, Accept(origin_.sequence, kSmallMessageBytes));
  return absl::OkStatus();
}

absl::Status StreamSession::HandleAttributes(const v1::Attributes& untrusted) {
  const auto attributes = context_.admission->AdmitAttributes(untrusted);
  if (!attributes.ok()) return attributes.status();
  constexpr absl::string_view kField = "attributes.job";
  TACHO_RETURN_IF_ERROR(CheckMay(untrusted.job(), kField));
  TACHO_RETURN_IF_ERROR(context_.admission->CheckShard(untrusted.job(), kField));
  Charge(SamplesOf(untrusted), nullptr);
  origin_.sequence = untrusted.sequence();
  if (!AdmitJob(attributes->job)) return absl::OkStatus();
  context_.store->AppendAttributes(origin_, *attributes,
                                   Accept(origin_.sequence, untrusted.ByteSizeLong()));
  return absl::OkStatus();
}

absl::Status StreamSession::HandleGap(const v1::Gap& untrusted) {
  TACHO_ASSIGN_OR_RETURN(const auto lost, context_.admission->AdmitGap(untrusted));
  Charge(SamplesOf(untrusted), nullptr);
  origin_.sequence = untrusted.sequence();
  context_.metrics->LossReported(lost.last - lost.first + 1, untrusted.rows());
  heard_.Lost(untrusted.rows(), absl::ToUnixNanos(context_.now()));
  context_.store->AppendGap(origin_, lost, untrusted.rows(), untrusted.reason(),
                            Accept(origin_.sequence, kSmallMessageBytes));
  return absl::OkStatus();
}

void StreamSession::Charge(uint64_t samples, edge::TokenBucket* job) {
  wait_ = context_.quotas->Charge(samples, agent_bucket_.get(), job);
}

edge::Rate StreamSession::DefinitionRate() const {
  return {context_.limiting->definitions_per_second(), context_.limiting->definitions_burst_ns()};
}

void StreamSession::ChargeDefinitions(uint64_t series) {
  TACHO_CHECK(definitions_ != nullptr);
  const int64_t now_ns = absl::ToUnixNanos(MonotonicNow());
  const absl::Duration length =
      absl::Nanoseconds(definitions_->Take(series, DefinitionRate(), now_ns));
  if (length > wait_.length) wait_ = {length, edge::Quotas::Limit::kDefinitions};
  if (context_.definitions != nullptr) context_.definitions->Defined(series);
}

bool StreamSession::IsToBeQueued(size_t bytes) const {
  return hello_seen_ && context_.definitions != nullptr && context_.definitions->IsFor(bytes);
}

int64_t StreamSession::DefinitionDebt() const {
  if (definitions_ == nullptr) return 0;
  return definitions_->UntilFull(DefinitionRate(), absl::ToUnixNanos(MonotonicNow()));
}

uint64_t StreamSession::RowsPerSecond() const {
  const uint64_t rate = context_.quotas->agent_rate();
  if (rate == 0 || samples_ == 0) return 0;
  const double rows_per_sample = static_cast<double>(rows_) / static_cast<double>(samples_);
  return std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(rate) * rows_per_sample));
}

storage::AppendDone StreamSession::Accept(uint64_t sequence, uint64_t bytes) {
  acks_->Accepted(sequence, bytes);
  return [acks = acks_, bytes](const absl::Status& status) { acks->Settled(status, bytes); };
}

}  // namespace tacho::server::ingest
