// Turns what one ring holds into batches, events and attributes, and stores the place in the ring
// with them, so that a restart neither repeats nor skips a row.
#include "agent/sources/rings/ring_tail.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/histogram_layout.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

// Keys of one Attributes message: half of what tacho.v1 allows.
constexpr size_t kMaxAttributesPerMessage = 128;

// "1 <pid> <start ticks> <created> <record> <row> <attributes>"
constexpr size_t kCheckpointWords = 7;

std::string Identity(const client::RingInfo& info) {
  return absl::StrCat("1 ", info.pid, " ", info.process_start_ticks, " ", info.created_unix_ns);
}

v1::MetricType TypeOf(client::MetricType type) {
  return type == client::MetricType::kCounter ? v1::METRIC_TYPE_COUNTER : v1::METRIC_TYPE_GAUGE;
}

}  // namespace

RingTail::RingTail(std::unique_ptr<client::RingReader> reader, std::string key, std::string host,
                   const RowSink& sink, RingStats* stats)
    : reader_(std::move(reader)), key_(std::move(key)), host_(std::move(host)), stats_(stats) {
  const std::string checkpoint = sink.ReadCheckpoint(key_);
  const std::vector<absl::string_view> words = absl::StrSplit(checkpoint, ' ');
  client::RingCursor cursor;
  uint64_t attributes = 0;
  if (words.size() != kCheckpointWords ||
      absl::StrCat(words[0], " ", words[1], " ", words[2], " ", words[3]) !=
          Identity(reader_->info()) ||
      !absl::SimpleAtoi(words[4], &cursor.record) || !absl::SimpleAtoi(words[5], &cursor.row) ||
      !absl::SimpleAtoi(words[6], &attributes)) {
    return;
  }
  cursor_ = cursor;
  attributes_sent_ = attributes;
}

std::string RingTail::Checkpoint(const client::RingCursor& cursor) const {
  return absl::StrCat(Identity(reader_->info()), " ", cursor.record, " ", cursor.row, " ",
                      attributes_sent_);
}

v1::Source RingTail::SourceOf() const {
  v1::Source source;
  source.set_job(reader_->info().job);
  source.set_task(reader_->info().task);
  source.set_attempt(reader_->info().attempt);
  source.set_host(host_);
  return source;
}

absl::Status RingTail::Read(absl::Time now, RowSink* sink, bool* more, bool* drained) {
  *more = false;
  *drained = false;
  const bool alive = reader_->WriterAlive();  // Before Read(): see there.
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
  *more = !batch->at_end;
  *drained = batch->at_end && !alive;
  return absl::OkStatus();
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
  const RowSink::Checkpoint checkpoint{key_, Checkpoint(piece.end)};
  const auto* rows = std::get_if<client::RingRows>(&piece.content);
  const auto* event = std::get_if<client::RingEvent>(&piece.content);
  absl::Status status =
      rows != nullptr ? SendRows(*rows, checkpoint, sink)
      : event != nullptr
          ? SendEvent(*event, checkpoint, sink)
          : SendHistogram(std::get<client::RingHistogramState>(piece.content), checkpoint, sink);
  if (absl::IsUnavailable(status)) return status;
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
