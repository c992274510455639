// The part of Spool that puts entries in: opening, rows, events, checkpoints. Everything that
// belongs together goes into one write of the journal, so a crash leaves all of it or nothing.
#include "agent/spool/spool.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/spool/spool_division.h"
#include "agent/spool/spool_notes.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

using Note = storage::SpoolJournal::Note;

// Spooled without a look at how full the disk is.
constexpr uint64_t kUncheckedBytes = 64u << 10;

// Rounded up: nothing is to be too old too early.
Note NoteOf(const SpoolAges::Mark& mark) {
  return {SpooledKey(mark.sequence), absl::StrCat(absl::ToUnixSeconds(mark.before) + 1)};
}

void SetSequence(uint64_t sequence, v1::ClientMessage* message) {
  switch (message->message_case()) {
    case v1::ClientMessage::kBatch:
      return message->mutable_batch()->set_sequence(sequence);
    case v1::ClientMessage::kEvent:
      return message->mutable_event()->set_sequence(sequence);
    case v1::ClientMessage::kAttributes:
      return message->mutable_attributes()->set_sequence(sequence);
    case v1::ClientMessage::kGap:
      return message->mutable_gap()->set_sequence(sequence);
    default:
      TACHO_CHECK(false);  // A message without a sequence is never spooled.
  }
}

// Rows that were never spooled: the Gap is all that there is of them.
v1::ClientMessage GapOfItsOwn(uint64_t rows) {
  v1::ClientMessage message;
  message.mutable_gap()->set_rows(rows);
  message.mutable_gap()->set_reason("the agent's disk refused them");
  return message;
}

void NameItself(uint64_t sequence, v1::Gap* gap) {
  if (gap->has_lost()) return;
  gap->mutable_lost()->set_first(sequence);
  gap->mutable_lost()->set_last(sequence);
}

// Makes way for a new spool. Earlier damaged ones are removed: they could fill the disk.
absl::Status MoveAside(const std::string& path, absl::Time now, const log::Log& log) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path from = fs::absolute(path, error);
  if (!from.has_filename()) from = from.parent_path();
  const std::string prefix = from.filename().string() + ".damaged-";
  std::vector<fs::path> earlier;
  for (const auto& entry : fs::directory_iterator(from.parent_path(), error)) {
    if (entry.path().filename().string().starts_with(prefix)) earlier.push_back(entry.path());
  }
  for (const fs::path& old : earlier) {
    log.Warn("removes a damaged spool that was set aside earlier", {{"path", old.string()}});
    fs::remove_all(old, error);
  }
  const std::string to = absl::StrCat(from.parent_path().string(), "/", prefix,
                                      absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
  fs::rename(from, to, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("rename ", from.string(), ": ", error.message()));
  }
  log.Error("moved the damaged spool aside and begins a new one; what it had not sent is lost",
            {{"moved_to", to}});
  // The spools of a cluster's shards, which lie inside, are not damaged.
  for (const FoundSpool& inside : FindSpools(to)) {
    if (inside.shards == 0) continue;
    fs::create_directories(from, error);
    fs::rename(inside.path, from / fs::path(inside.path).filename(), error);
    if (error) log.Error("cannot move a spool back", {{"path", inside.path}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(SpoolOptions options) {
  for (bool moved = false;; moved = true) {
    auto journal = storage::SpoolJournal::Open(
        {.path = options.path, .env = options.env, .reopen_interval = options.reopen_interval});
    absl::Status status = journal.status();
    if (status.ok()) {
      auto spool = std::unique_ptr<Spool>(new Spool(options, *std::move(journal)));
      absl::MutexLock lock(&spool->mutex_);
      status = spool->Load();
      if (status.ok()) return spool;
    }
    if (!absl::IsDataLoss(status) || moved) return status;
    options.log.Error("the spool is damaged", {{"reason", status.message()}});
    status = MoveAside(options.path, options.now(), options.log);
    if (!status.ok()) return status;
  }
}

Spool::Spool(SpoolOptions options, std::unique_ptr<storage::SpoolJournal> journal)
    : options_(std::move(options)), journal_(std::move(journal)), ages_(options_.max_age) {}

absl::Status Spool::Load() {
  TACHO_ASSIGN_OR_RETURN(const auto notes, journal_->ReadNotes(""));
  for (const Note& note : notes) {
    absl::string_view key = note.key;
    if (absl::ConsumePrefix(&key, kCheckpointPrefix)) {
      checkpoints_[std::string(key)] = note.value;
    } else if (const auto sequence = NumberOfKey<uint64_t>(key, kDroppedPrefix)) {
      left_out_.insert(*sequence);
    } else if (const auto mark = NumberOfKey<uint64_t>(key, kSpooledPrefix)) {
      int64_t seconds = 0;
      if (absl::SimpleAtoi(note.value, &seconds)) {
        ages_.Restore({*mark, absl::FromUnixSeconds(seconds)});
      }
    } else if (const auto id = NumberOfKey<uint32_t>(key, kLayoutPrefix); id && *id != 0) {
      // Layouts count from 1, so nothing refers to another one.
      v1::Layout layout;
      if (!layout.ParseFromString(note.value)) {
        return absl::DataLossError(absl::StrCat("note ", note.key, " is no layout"));
      }
      AddLayout(*id, note.value, layout);
      layouts_[*id].noted = true;
    }
  }
  old_layouts_end_ = journal_->end();
  // Opening has written to tables, and synced, what a crashed process left in the log.
  TACHO_RETURN_IF_ERROR(journal_->Sync());
  synced_end_ = journal_->end();
  read_end_ = journal_->end();
  unchecked_bytes_ = kUncheckedBytes;
  if (const auto mark = ages_.Opened(journal_->end(), options_.now())) {
    absl::Status status = journal_->WriteNotes({NoteOf(*mark)});
    if (!status.ok()) return status;
  }
  MakeRoom();
  return absl::OkStatus();
}

absl::Status Spool::AppendRows(uint32_t layout, std::span<const int64_t> times_unix_ns,
                               std::span<const int64_t> steps, std::span<const double> values,
                               const Checkpoint& checkpoint) {
  {
    absl::MutexLock lock(&mutex_);
    const Rows rows = {times_unix_ns, steps, values};
    TACHO_RETURN_IF_ERROR(CheckRows(layout, rows));
    TACHO_RETURN_IF_ERROR(CheckPatience(options_, journal_->bytes(), checkpoint));
    const std::vector<uint32_t> parts = PartsOf(layout);
    std::vector<Note> notes;
    for (const uint32_t part : parts) {
      const LayoutState& state = layouts_[part];
      if (!state.noted) notes.push_back({LayoutKey(part), *state.content});
    }
    std::vector<v1::ClientMessage> messages = Split(parts, rows);
    absl::Status status = Append(messages, checkpoint, std::move(notes));
    const uint64_t count = times_unix_ns.size() * parts.size();
    if (absl::IsUnavailable(status) && checkpoint.key.empty()) CountRefusedRows(count);
    if (!status.ok()) return status;
    for (const uint32_t part : parts) layouts_[part].noted = true;
    stats_.appended_rows += count;
  }
  TellListener();
  return absl::OkStatus();
}

absl::Status Spool::AppendEvent(const v1::Event& event, const Checkpoint& checkpoint) {
  v1::ClientMessage message;
  *message.mutable_event() = event;
  return AppendOne(std::move(message), checkpoint);
}

absl::Status Spool::AppendAttributes(const v1::Attributes& attributes,
                                     const Checkpoint& checkpoint) {
  v1::ClientMessage message;
  *message.mutable_attributes() = attributes;
  return AppendOne(std::move(message), checkpoint);
}

absl::Status Spool::AppendLoss(uint64_t rows, absl::string_view reason,
                               const Checkpoint& checkpoint) {
  v1::ClientMessage message;
  message.mutable_gap()->set_rows(rows);
  message.mutable_gap()->set_reason(std::string(reason.substr(0, kMaxLossReasonBytes)));
  return AppendOne(std::move(message), checkpoint);
}

absl::Status Spool::AppendOne(v1::ClientMessage message, const Checkpoint& checkpoint) {
  {
    absl::MutexLock lock(&mutex_);
    absl::Status status = Append({&message, 1}, checkpoint, {});
    if (!status.ok()) return status;
  }
  TellListener();
  return absl::OkStatus();
}

absl::Status Spool::WriteCheckpoint(const Checkpoint& checkpoint) {
  absl::MutexLock lock(&mutex_);
  return Append({}, checkpoint, {});
}

std::vector<RowSink::Checkpoint> Spool::Checkpoints() const {
  absl::MutexLock lock(&mutex_);
  std::vector<Checkpoint> all;
  for (const auto& [key, value] : checkpoints_) all.push_back({.key = key, .value = value});
  return all;
}

void Spool::CountFromHere() {
  absl::MutexLock lock(&mutex_);
  stats_.appended_rows = 0;
}

std::string Spool::ReadCheckpoint(absl::string_view key) const {
  absl::MutexLock lock(&mutex_);
  const auto found = checkpoints_.find(key);
  return found == checkpoints_.end() ? std::string() : found->second;
}

absl::Status Spool::Append(std::span<v1::ClientMessage> messages, const Checkpoint& checkpoint,
                           std::vector<Note> notes) {
  if (!checkpoint.key.empty()) {
    notes.push_back({absl::StrCat(kCheckpointPrefix, checkpoint.key), checkpoint.value});
  }
  if (!messages.empty()) {
    if (absl::Status status = CheckDisk(); !status.ok()) return status;
  }
  TACHO_RETURN_IF_ERROR(AppendMessages(messages, notes));
  if (checkpoint.value.empty()) {
    checkpoints_.erase(checkpoint.key);
  } else if (!checkpoint.key.empty()) {
    checkpoints_[checkpoint.key] = checkpoint.value;
  }
  if (!messages.empty()) {
    TellRefusedRows();
    MakeRoom();
  }
  return absl::OkStatus();
}

absl::Status Spool::AppendMessages(std::span<v1::ClientMessage> messages, std::vector<Note> notes,
                                   uint64_t trim_to) {
  if (messages.empty()) return notes.empty() ? absl::OkStatus() : journal_->WriteNotes(notes);

  // All appending is done under our lock, so this is what the journal will give.
  uint64_t sequence = journal_->end();
  const absl::Time now = options_.now();
  const auto mark = ages_.Due(sequence, now);
  if (mark) notes.push_back(NoteOf(*mark));
  std::vector<std::string> entries;
  entries.reserve(messages.size());
  for (v1::ClientMessage& message : messages) {
    if (message.has_gap()) NameItself(sequence, message.mutable_gap());
    SetSequence(sequence++, &message);
    entries.push_back(message.SerializeAsString());
    unchecked_bytes_ += entries.back().size();
  }
  const auto first = journal_->AppendAll(entries, notes, trim_to);
  TACHO_CHECK(!first.ok() || *first + entries.size() == sequence);
  if (first.ok()) ages_.Spooled(mark, sequence, now);
  return first.status();
}

absl::Status Spool::CheckDisk() {
  if (unchecked_bytes_ < kUncheckedBytes) return absl::OkStatus();
  if (!journal_->HasSpareRoom()) {
    journal_->ReleaseRoom().IgnoreError();
    return absl::UnavailableError(
        absl::StrCat("the disk of ", options_.path,
                     " is nearly full; nothing more is spooled, so that what waits there can be "
                     "sent: make room, or lower spool.max_bytes"));
  }
  unchecked_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status CheckPatience(const SpoolOptions& options, uint64_t bytes,
                           const RowSink::Checkpoint& checkpoint) {
  if (bytes <= options.max_bytes / 2) return absl::OkStatus();
  const std::string source = checkpoint.key.substr(0, checkpoint.key.find('/'));
  if (!options.patient_sources.contains(source)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the spool is more than half full: what '", source,
                                             "' reads waits in its files"));
}

void Spool::CountRefusedRows(uint64_t rows) {
  rows_refused_ += rows;
  stats_.Of(SpoolLoss::kDisk).rows += rows;
}

void Spool::TellRefusedRows() {
  if (rows_refused_ == 0) return;
  v1::ClientMessage gap = GapOfItsOwn(rows_refused_);
  if (AppendMessages({&gap, 1}, {}).ok()) rows_refused_ = 0;
}

void Spool::TellListener() {
  std::shared_ptr<const std::function<void()>> listener;
  {
    absl::MutexLock lock(&mutex_);
    listener = listener_;
  }
  if (listener != nullptr && *listener) (*listener)();
}

void Spool::SetListener(std::function<void()> appended) {
  auto listener = std::make_shared<const std::function<void()>>(std::move(appended));
  absl::MutexLock lock(&mutex_);
  listener_ = std::move(listener);
}

v1::Source Spool::SourceOf(const SpooledMessage& message) const {
  v1::Source source;
  if (message.kind() == v1::ClientMessage::kEvent) return message.Parsed().event().source();
  if (message.kind() == v1::ClientMessage::kAttributes) {
    source.set_job(message.Parsed().attributes().job());
  } else if (message.is_batch()) {
    const auto layout = FindLayout(message.layout());
    if (layout.ok()) return layout->source();
  }
  return source;
}

SpoolStats Spool::Stats() const {
  absl::MutexLock lock(&mutex_);
  SpoolStats stats = stats_;
  stats.entries = journal_->end() - journal_->begin();
  stats.bytes = journal_->bytes();
  return stats;
}

}  // namespace tacho::agent
