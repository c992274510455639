// Packs records into messages with a deterministic layout, order and numbering, so that the same
// files always give the same messages.
#include "client/import/message_builder.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/ring/ring_text.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

// Limits of tacho.v1 (types.proto, ingest.proto).
constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxUnitBytes = 63;
constexpr size_t kMaxHelpBytes = 1024;
constexpr size_t kMaxLabelNameBytes = 128;
constexpr size_t kMaxLabelValueBytes = 1024;
constexpr size_t kMaxKindBytes = 128;
constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kMaxFields = 32;
constexpr size_t kMaxFieldBytes = 1024;
constexpr size_t kMaxAttributes = 256;
constexpr size_t kMaxAttributeBytes = 4096;

bool IsClean(absl::string_view text) {
  return client::IsCleanText(std::string_view(text.data(), text.size()));
}

std::string Cleaned(const std::string& text, size_t max_bytes) {
  return client::CleanText(text, max_bytes);
}

bool IsName(absl::string_view text, size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes && IsClean(text);
}

bool IsLabelName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxLabelNameBytes || absl::StartsWith(name, "__"))
    return false;
  for (const absl::string_view reserved : {"job", "task", "host"}) {
    if (name == reserved) return false;
  }
  return !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsAllowed(const SeriesKey& key) {
  if (!IsName(key.metric, kMaxNameBytes) || !IsName(key.host, kMaxNameBytes)) return false;
  for (size_t i = 0; i < key.labels.size(); ++i) {
    const auto& [name, value] = key.labels[i];
    if (!IsLabelName(name) || !IsName(value, kMaxLabelValueBytes)) return false;
    if (i > 0 && name == key.labels[i - 1].first) return false;
  }
  return true;
}

// Identifies a series. Control characters separate its parts, because names have none.
std::string Encoded(const SeriesKey& key) {
  std::string text =
      absl::StrCat(key.task ? absl::StrCat(*key.task) : "", "\n", key.host, "\n", key.metric);
  for (const auto& [name, value] : key.labels) absl::StrAppend(&text, "\n", name, "\t", value);
  return text;
}

}  // namespace

MessageBuilder::MessageBuilder(std::string job, Emit emit, RepeatCounter* repeats)
    : job_(std::move(job)), emit_(std::move(emit)), repeats_(repeats) {}

absl::Status MessageBuilder::FindSeries(const SeriesKey& key, std::optional<uint32_t>* series) {
  series->reset();
  SeriesKey sorted = key;
  std::sort(sorted.labels.begin(), sorted.labels.end());
  const std::string name = Encoded(sorted);
  std::string encoded = absl::StrCat(sorted.attempt, "\n", name);
  if (const auto found = series_by_key_.find(encoded); found != series_by_key_.end()) {
    *series = found->second;
    return absl::OkStatus();
  }
  if (!IsAllowed(sorted)) return absl::OkStatus();
  if (series_.size() == kMaxSeries) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are more than ", kMaxSeries,
                     " series: take some of them at a time, or only what you need with --metric"));
  }
  sorted.unit = Cleaned(sorted.unit, kMaxUnitBytes);
  sorted.help = Cleaned(sorted.help, kMaxHelpBytes);
  *series = static_cast<uint32_t>(series_.size());
  series_.push_back({std::move(sorted), absl::HashOf(encoded), absl::HashOf(name)});
  series_by_key_.emplace(std::move(encoded), **series);
  return absl::OkStatus();
}

absl::Status MessageBuilder::AddRow(const Row& row) {
  NoteRow(row);
  for (size_t begin = 0; begin < row.cells.size();) {
    // Shapes without end would take memory without end: then each value is a row of its own.
    const size_t columns = shapes_.size() < kMaxShapes ? kMaxColumns : 1;
    const size_t end = std::min(begin + columns, row.cells.size());
    TACHO_RETURN_IF_ERROR(AddCells(row, begin, end));
    begin = end;
  }
  return absl::OkStatus();
}

void MessageBuilder::NoteRow(const Row& row) {
  ++summary_.rows;
  summary_.samples += row.cells.size();
  const auto note = [](int64_t value, std::optional<int64_t>* low, std::optional<int64_t>* high) {
    *low = std::min(low->value_or(value), value);
    *high = std::max(high->value_or(value), value);
  };
  note(row.time_unix_ns, &summary_.first_unix_ns, &summary_.last_unix_ns);
  if (row.step) note(*row.step, &summary_.first_step, &summary_.last_step);
  for (const Cell& cell : row.cells) {
    Series& series = series_[cell.series];
    if (!std::exchange(series.used, true)) summary_.series.insert(series.name_hash);
    if (repeats_ != nullptr) NoteRepeat(row, series, cell.value);
  }
}

void MessageBuilder::NoteRepeat(const Row& row, const Series& series, double value) {
  const RepeatCounter::Seen seen = repeats_->Add(series.hash, row.time_unix_ns, row.step, value);
  summary_.repeated_is_exact = repeats_->exact();
  if (seen == RepeatCounter::Seen::kNo) return;
  ++summary_.repeated;
  if (seen == RepeatCounter::Seen::kSameValue || summary_.replaced++ > 0) return;
  summary_.first_replaced = series.key.metric;
  if (row.step) absl::StrAppend(&summary_.first_replaced, " at step ", *row.step);
}

absl::Status MessageBuilder::AddCells(const Row& row, size_t begin, size_t end) {
  Shape& shape = FindShape(row, begin, end);
  const size_t before = shape.bytes();
  shape.times.push_back(row.time_unix_ns);
  if (row.step) shape.steps.push_back(*row.step);
  for (size_t i = begin; i < end; ++i) shape.values.push_back(row.cells[i].value);
  buffered_bytes_ += shape.bytes() - before;
  if (shape.bytes() >= kMaxBatchBytes) return FlushShape(&shape);
  if (buffered_bytes_ < kMaxBufferedBytes) return absl::OkStatus();
  for (const auto& each : shapes_) {
    if (absl::Status status = FlushShape(each.get()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

MessageBuilder::Shape& MessageBuilder::FindShape(const Row& row, size_t begin, size_t end) {
  std::string key(1, row.step ? 's' : 't');
  for (size_t i = begin; i < end; ++i) {
    char bytes[sizeof(uint32_t)];
    std::memcpy(bytes, &row.cells[i].series, sizeof(bytes));
    key.append(bytes, sizeof(bytes));
  }
  const auto [found, added] = shapes_by_series_.emplace(std::move(key), shapes_.size());
  if (added) {
    shapes_.push_back(std::make_unique<Shape>());
    shapes_.back()->layout = MakeLayout(row, begin, end);
  }
  return *shapes_[found->second];
}

v1::Layout MessageBuilder::MakeLayout(const Row& row, size_t begin, size_t end) const {
  v1::Layout layout;
  const SeriesKey& first = series_[row.cells[begin].series].key;
  layout.mutable_source()->set_job(job_);
  layout.mutable_source()->set_attempt(first.attempt);
  layout.mutable_source()->set_host(first.host);
  if (first.task) layout.mutable_source()->set_task(*first.task);
  layout.set_has_steps(row.step.has_value());
  for (size_t i = begin; i < end; ++i) {
    const SeriesKey& key = series_[row.cells[i].series].key;
    v1::Layout::Series& series = *layout.add_series();
    series.mutable_metric()->set_name(key.metric);
    series.mutable_metric()->set_type(key.type);
    series.mutable_metric()->set_unit(key.unit);
    series.mutable_metric()->set_help(key.help);
    for (const auto& [name, value] : key.labels) {
      v1::Label& label = *series.add_labels();
      label.set_name(name);
      label.set_value(value);
    }
  }
  return layout;
}

absl::Status MessageBuilder::FlushShape(Shape* shape) {
  if (shape->times.empty()) return absl::OkStatus();
  v1::ClientMessage message;
  v1::Batch& batch = *message.mutable_batch();
  batch.mutable_times_unix_ns()->Assign(shape->times.begin(), shape->times.end());
  batch.mutable_steps()->Assign(shape->steps.begin(), shape->steps.end());
  batch.mutable_values()->Assign(shape->values.begin(), shape->values.end());
  buffered_bytes_ -= shape->bytes();
  shape->times.clear();
  shape->steps.clear();
  shape->values.clear();
  return EmitMessage(&shape->layout, &message);
}

absl::Status MessageBuilder::AddEvent(v1::Event event) {
  event.mutable_source()->set_job(job_);
  event.mutable_source()->set_host(Cleaned(event.source().host(), kMaxNameBytes));
  event.set_kind(Cleaned(event.kind(), kMaxKindBytes));
  event.set_message(Cleaned(event.message(), kMaxMessageBytes));
  std::map<std::string, std::string> fields;
  for (const auto& [name, value] : event.fields()) {
    if (fields.size() < kMaxFields && IsName(name, kMaxLabelNameBytes)) {
      fields[name] = Cleaned(value, kMaxFieldBytes);
    }
  }
  event.clear_fields();
  event.mutable_fields()->insert(fields.begin(), fields.end());
  if (event.kind().empty() || event.source().host().empty()) {
    Note("events without a kind or host are left out");
    return absl::OkStatus();
  }
  ++summary_.events;
  v1::ClientMessage message;
  *message.mutable_event() = std::move(event);
  return EmitMessage(nullptr, &message);
}

absl::Status MessageBuilder::AddAttributes(uint32_t attempt, const std::string& name,
                                           const std::string& value) {
  v1::Attributes& attributes = attributes_[attempt];
  const std::string cleaned = Cleaned(value, kMaxAttributeBytes);
  if (!IsName(name, kMaxLabelNameBytes) || cleaned.empty()) return absl::OkStatus();
  if (static_cast<size_t>(attributes.values_size()) == kMaxAttributes &&
      !attributes.values().contains(name)) {
    Note(absl::StrCat("an attempt has more than ", kMaxAttributes,
                      " attributes: the rest is left out"));
    return absl::OkStatus();
  }
  (*attributes.mutable_values())[name] = cleaned;
  return absl::OkStatus();
}

void MessageBuilder::AddSkipped(Skip reason, uint64_t samples, absl::string_view where) {
  Summary::Skipped& skipped = summary_.skipped[static_cast<size_t>(reason)];
  if (skipped.samples == 0 && samples > 0) skipped.where = std::string(where);
  skipped.samples += samples;
}

void MessageBuilder::Note(absl::string_view text) {
  Summary note;
  note.notes.push_back(std::string(text));
  summary_.Add(note);
}

absl::Status MessageBuilder::Finish() {
  for (const auto& shape : shapes_) {
    if (absl::Status status = FlushShape(shape.get()); !status.ok()) return status;
  }
  for (auto& [attempt, attributes] : attributes_) {
    if (attributes.values().empty()) continue;
    summary_.attributes += static_cast<uint64_t>(attributes.values_size());
    v1::ClientMessage message;
    attributes.set_job(job_);
    attributes.set_attempt(attempt);
    *message.mutable_attributes() = attributes;
    if (absl::Status status = EmitMessage(nullptr, &message); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status MessageBuilder::EmitMessage(const v1::Layout* layout, v1::ClientMessage* message) {
  ++sequence_;
  ++summary_.messages;
  switch (message->message_case()) {
    case v1::ClientMessage::kBatch:
      message->mutable_batch()->set_sequence(sequence_);
      break;
    case v1::ClientMessage::kEvent:
      message->mutable_event()->set_sequence(sequence_);
      break;
    default:
      message->mutable_attributes()->set_sequence(sequence_);
      break;
  }
  return emit_(sequence_, layout, message);
}

}  // namespace tacho::importer
