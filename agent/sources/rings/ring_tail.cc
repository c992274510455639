// Turns what one ring holds into batches, events and attributes, and stores the place in the ring
// with them, so that a restart neither repeats nor skips a row. The end of a task is an event that
// the agent adds, because a trainer that was killed cannot.
#include "agent/sources/rings/ring_tail.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/histogram_layout.h"
#include "proto/base/status_macros.h"
#include "proto/base/task_end.h"

namespace tacho::agent {
namespace {

// Keys of one Attributes message: half of what tacho.v1 allows.
constexpr size_t kMaxAttributesPerMessage = 128;

// "1 <pid> <start ticks> <created> <record> <row> <attributes> <last time> <whether its end was
// told>"
constexpr size_t kCheckpointWords = 9;

// A process that lost its ring's lock and lives after so many looks has become another program.
constexpr int kLooksAtDying = 10;

std::string Identity(const client::RingInfo& info) {
  return absl::StrCat("1 ", info.pid, " ", info.process_start_ticks, " ", info.created_unix_ns);
}

// Adds what is known of an end that the trainer did not record. `status` is as wait(2) returns it.
void DescribeExit(std::optional<int> status, v1::Event* event) {
  if (!status.has_value()) {
    event->set_message("The process is gone and left its record open; how it ended is not known");
  } else if (WIFSIGNALED(*status)) {
    const int signal = WTERMSIG(*status);
    const char* name = sigabbrev_np(signal);
    (*event->mutable_fields())["signal"] = absl::StrCat(signal);
    event->set_message(name == nullptr ? absl::StrCat("Signal ", signal, " ended the process")
                                       : absl::StrCat("SIG", name, " ended the process"));
  } else {
    (*event->mutable_fields())["exit_code"] = absl::StrCat(WEXITSTATUS(*status));
    event->set_message(
        absl::StrCat("The process left its record open and returned ", WEXITSTATUS(*status)));
  }
}

v1::MetricType TypeOf(client::MetricType type) {
  return type == client::MetricType::kCounter ? v1::METRIC_TYPE_COUNTER : v1::METRIC_TYPE_GAUGE;
}

}  // namespace

RingTail::RingTail(std::unique_ptr<client::RingReader> reader, std::string key, std::string host,
                   const RowSink& sink, RingStats* stats)
    : reader_(std::move(reader)),
      key_(std::move(key)),
      host_(std::move(host)),
      stats_(stats),
      process_(reader_->info().pid, reader_->info().process_start_ticks) {
  const std::string checkpoint = sink.ReadCheckpoint(key_);
  const std::vector<absl::string_view> words = absl::StrSplit(checkpoint, ' ');
  client::RingCursor cursor;
  uint64_t attributes = 0;
  Told told;
  if (words.size() != kCheckpointWords ||
      absl::StrCat(words[0], " ", words[1], " ", words[2], " ", words[3]) !=
          Identity(reader_->info()) ||
      !absl::SimpleAtoi(words[4], &cursor.record) || !absl::SimpleAtoi(words[5], &cursor.row) ||
      !absl::SimpleAtoi(words[6], &attributes) || !absl::SimpleAtoi(words[7], &told.last_ns)) {
    return;
  }
  told.end = words[8] == "1";
  cursor_ = cursor;
  attributes_sent_ = attributes;
  told_ = told;
}

std::string RingTail::Checkpoint(const client::RingCursor& cursor) const {
  return absl::StrCat(Identity(reader_->info()), " ", cursor.record, " ", cursor.row, " ",
                      attributes_sent_, " ", told_.last_ns, " ", told_.end ? 1 : 0);
}

bool RingTail::WriterAlive() const { return reader_->WriterAlive() && !process_.Gone(); }

bool RingTail::Settled() {
  return reader_->closed() || !process_.Lives() || ++looks_at_dying_ > kLooksAtDying;
}

RingTail::Told RingTail::After(const client::RingPiece& piece, Told told) {
  const auto note = [&told](int64_t time_ns) { told.last_ns = std::max(told.last_ns, time_ns); };
  if (const auto* rows = std::get_if<client::RingRows>(&piece.content)) {
    if (!rows->times_unix_ns.empty()) note(rows->times_unix_ns.back());
    told.end = false;
  } else if (const auto* event = std::get_if<client::RingEvent>(&piece.content)) {
    note(event->time_unix_ns);
    told.end = told.end || IsEndKind(event->kind);
  }
  return told;
}

v1::Source RingTail::SourceOf() const {
  v1::Source source;
  source.set_job(reader_->info().job);
  source.set_task(reader_->info().task);
  source.set_attempt(reader_->info().attempt);
  source.set_host(host_);
  return source;
}

absl::Status RingTail::Read(absl::Time now, RowSink* sink, State* state) {
  *state = State::kWaiting;
  const bool alive = WriterAlive();  // Before RingReader::Read(): see there.
  seen_alive_ = seen_alive_ || alive;
  absl::StatusOr<client::RingBatch> batch = reader_->Read(cursor_);
  if (absl::IsOutOfRange(batch.status())) {
    // The checkpoint is of a ring that only looked the same. Repeats count once.
    cursor_ = client::RingCursor();
    batch = reader_->Read(cursor_);
  }
  if (!batch.ok()) return batch.status();
  TACHO_RETURN_IF_ERROR(SendAttributes(sink));
  for (const client::RingPiece& piece : batch->pieces) {
    if (absl::Status status = SendPiece(piece, sink); !status.ok()) return status;
  }
  TACHO_RETURN_IF_ERROR(SendLoss(*batch, now, sink));
  if (!batch->at_end) {
    *state = State::kMore;
  } else if (!alive && Settled()) {
    *state = State::kDrained;
  } else if (reader_->closed()) {
    *state = State::kEnded;
  }
  return absl::OkStatus();
}

absl::Status RingTail::TellEnd(absl::Time now, RowSink* sink) {
  if (told_.end) return absl::OkStatus();
  return SetEndTold([&](const RowSink::Checkpoint& checkpoint) {
    return sink->AppendEvent(EndEvent(now), checkpoint);
  });
}

absl::Status RingTail::LeaveEndToAnother(RowSink* sink) {
  if (told_.end) return absl::OkStatus();
  return SetEndTold(
      [sink](const RowSink::Checkpoint& checkpoint) { return sink->WriteCheckpoint(checkpoint); });
}

absl::Status RingTail::SetEndTold(
    absl::FunctionRef<absl::Status(const RowSink::Checkpoint& checkpoint)> store) {
  told_.end = true;
  const absl::Status status = store({key_, Checkpoint(cursor_)});
  if (absl::IsUnavailable(status)) {
    told_.end = false;
    return status;
  }
  if (!status.ok()) ++stats_->refused;
  return absl::OkStatus();
}

v1::Event RingTail::EndEvent(absl::Time now) const {
  v1::Event event;
  *event.mutable_source() = SourceOf();
  // A trainer that ended before this agent looked was there until its last record at least.
  const int64_t now_ns = absl::ToUnixNanos(now);
  const bool before_us = !seen_alive_ && told_.last_ns > 0;
  event.set_time_unix_ns(before_us ? told_.last_ns : std::max(now_ns, told_.last_ns));
  if (reader_->closed()) {
    event.set_kind(kEndedKind);
    event.set_message("The recorder was closed");
  } else {
    event.set_kind(kExitedKind);
    DescribeExit(process_.ExitStatus(), &event);
  }
  return event;
}

absl::Status RingTail::SendAttributes(RowSink* sink) {
  const std::vector<client::RingAttribute>& all = reader_->attributes();
  while (attributes_sent_ < all.size()) {
    const uint64_t end =
        std::min<uint64_t>(all.size(), attributes_sent_ + kMaxAttributesPerMessage);
    v1::Attributes attributes;
    attributes.set_job(reader_->info().job);
    attributes.set_attempt(reader_->info().attempt);
    for (uint64_t i = attributes_sent_; i < end; ++i) {
      (*attributes.mutable_values())[all[i].key] = all[i].value;
    }
    const uint64_t before = std::exchange(attributes_sent_, end);
    absl::Status status = sink->AppendAttributes(attributes, {key_, Checkpoint(cursor_)});
    if (absl::IsUnavailable(status)) {
      attributes_sent_ = before;
      return status;
    }
    if (!status.ok()) ++stats_->refused;
  }
  return absl::OkStatus();
}

absl::Status RingTail::SendPiece(const client::RingPiece& piece, RowSink* sink) {
  const Told before = std::exchange(told_, After(piece, told_));
  const RowSink::Checkpoint checkpoint{key_, Checkpoint(piece.end)};
  const auto* rows = std::get_if<client::RingRows>(&piece.content);
  const auto* event = std::get_if<client::RingEvent>(&piece.content);
  absl::Status status =
      rows != nullptr ? SendRows(*rows, checkpoint, sink)
      : event != nullptr
          ? SendEvent(*event, checkpoint, sink)
          : SendHistogram(std::get<client::RingHistogramState>(piece.content), checkpoint, sink);
  if (absl::IsUnavailable(status)) {
    told_ = before;
    return status;
  }
  if (!status.ok()) {
    ++stats_->refused;
  } else if (rows != nullptr) {
    stats_->rows += rows->times_unix_ns.size();
  }
  cursor_ = piece.end;
  return absl::OkStatus();
}

absl::Status RingTail::SendRows(const client::RingRows& rows, const RowSink::Checkpoint& checkpoint,
                                RowSink* sink) {
  TACHO_ASSIGN_OR_RETURN(const uint32_t layout, LayoutOf(rows.metric_count, rows.has_steps, sink));
  return sink->AppendRows(layout, rows.times_unix_ns, rows.steps, rows.values, checkpoint);
}

absl::Status RingTail::SendHistogram(const client::RingHistogramState& state,
                                     const RowSink::Checkpoint& checkpoint, RowSink* sink) {
  const absl::StatusOr<uint32_t> layout =
      LayoutOfHistogram(state.histogram, state.step.has_value(), sink);
  if (!layout.ok()) return layout.status();
  const std::vector<double> values = client::HistogramValues(state.counts, state.sum);
  const int64_t step = state.step.value_or(0);
  return sink->AppendRows(*layout, {&state.time_unix_ns, 1},
                          std::span(&step, state.step.has_value() ? 1 : 0), values, checkpoint);
}

absl::Status RingTail::SendEvent(const client::RingEvent& event,
                                 const RowSink::Checkpoint& checkpoint, RowSink* sink) {
  v1::Event out;
  *out.mutable_source() = SourceOf();
  out.set_time_unix_ns(event.time_unix_ns);
  if (event.step.has_value()) out.set_step(*event.step);
  out.set_kind(event.kind);
  out.set_message(event.message);
  for (const auto& [name, value] : event.fields) (*out.mutable_fields())[name] = value;
  return sink->AppendEvent(out, checkpoint);
}

absl::Status RingTail::SendLoss(const client::RingBatch& batch, absl::Time now, RowSink* sink) {
  if (batch.lost_rows == 0 && batch.lost_events == 0) {
    cursor_ = batch.end;
    return absl::OkStatus();
  }
  v1::Event event;
  *event.mutable_source() = SourceOf();
  event.set_time_unix_ns(absl::ToUnixNanos(now));
  event.set_kind("rows_lost");
  event.set_message(absl::StrCat(batch.lost_rows, " rows and ", batch.lost_events,
                                 " events were overwritten or damaged before they were read"));
  (*event.mutable_fields())["rows"] = absl::StrCat(batch.lost_rows);
  (*event.mutable_fields())["events"] = absl::StrCat(batch.lost_events);
  absl::Status status = sink->AppendEvent(event, {key_, Checkpoint(batch.end)});
  if (absl::IsUnavailable(status)) return status;
  stats_->lost_rows += batch.lost_rows;
  stats_->lost_events += batch.lost_events;
  cursor_ = batch.end;
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> RingTail::LayoutOf(uint32_t metric_count, bool has_steps, RowSink* sink) {
  const auto known = layouts_.find({metric_count, has_steps});
  if (known != layouts_.end()) return known->second;
  v1::Layout layout;
  *layout.mutable_source() = SourceOf();
  layout.set_has_steps(has_steps);
  for (uint32_t i = 0; i < metric_count; ++i) {
    const client::RingMetric& metric = reader_->metrics()[i];
    v1::Metric* out = layout.add_series()->mutable_metric();
    out->set_name(metric.name);
    out->set_type(TypeOf(metric.type));
    out->set_unit(metric.unit);
    out->set_help(metric.help);
  }
  absl::StatusOr<uint32_t> handle = sink->DefineLayout(layout);
  if (handle.ok()) layouts_[{metric_count, has_steps}] = *handle;
  return handle;
}

absl::StatusOr<uint32_t> RingTail::LayoutOfHistogram(uint32_t histogram, bool has_steps,
                                                     RowSink* sink) {
  const auto known = histogram_layouts_.find({histogram, has_steps});
  if (known != histogram_layouts_.end()) return known->second;
  const client::RingHistogram& definition = reader_->histograms()[histogram];
  v1::Layout layout;
  *layout.mutable_source() = SourceOf();
  layout.set_has_steps(has_steps);
  client::AddHistogramSeries(definition.name, definition.unit, definition.help, definition.bounds,
                             &layout);
  absl::StatusOr<uint32_t> handle = sink->DefineLayout(layout);
  if (handle.ok()) histogram_layouts_[{histogram, has_steps}] = *handle;
  return handle;
}

}  // namespace tacho::agent
