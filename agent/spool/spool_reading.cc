// The half of Spool that takes entries out: reading, syncing, trimming, giving up.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent/spool/spool.h"
#include "agent/spool/spool_losses.h"
#include "agent/spool/spool_notes.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

using Note = storage::SpoolJournal::Note;

// Given back to the disk at once: some files.
constexpr uint64_t kReleasedBytes = 16u << 20;
// More damaged entries than this are not a flipped bit here and there but a broken database.
constexpr uint64_t kMaxDamagedEntries = 64;

v1::ClientMessage GapOver(uint64_t sequence, uint64_t rows, absl::string_view reason) {
  v1::ClientMessage message;
  v1::Gap* gap = message.mutable_gap();
  gap->mutable_lost()->set_first(sequence);
  gap->mutable_lost()->set_last(sequence);
  gap->set_rows(rows);
  for (const char c : reason.substr(0, kMaxLossReasonBytes)) {
    gap->mutable_reason()->push_back(absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?');
  }
  return message;
}

// The Gap in the place of an entry that was given up; nullopt if the entry is none.
std::optional<v1::Gap> StandInOf(const std::string& bytes) {
  v1::ClientMessage message;
  const bool given_up = message.ParseFromString(bytes) && message.has_gap() &&
                        message.gap().lost().first() == message.gap().sequence();
  return given_up ? std::optional(message.gap()) : std::nullopt;
}

}  // namespace

uint64_t Spool::synced_end() const {
  absl::MutexLock lock(&mutex_);
  return synced_end_;
}

absl::Status Spool::Sync() {
  const uint64_t end = journal_->end();
  // Without our lock: sources go on appending while the disk works.
  TACHO_RETURN_IF_ERROR(journal_->Sync());
  absl::MutexLock lock(&mutex_);
  synced_end_ = std::max(synced_end_, end);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Spool::Entry>> Spool::Read(uint64_t sequence, uint64_t max_bytes) {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    sequence = std::max(sequence, journal_->begin());
    if (sequence >= synced_end_) return std::vector<Entry>();

    auto raw = journal_->Read(sequence, max_bytes);
    if (absl::IsDataLoss(raw.status())) {
      if (++damaged_entries_ > kMaxDamagedEntries) return raw.status();
      absl::Status status = GiveUpDamaged(sequence);
      if (!status.ok()) return status;
      if (left_out_.contains(sequence)) ++sequence;
      continue;
    }
    if (!raw.ok()) return raw.status();

    std::vector<Entry> entries;
    if (!raw->empty()) read_end_ = std::max(read_end_, raw->back().position + 1);
    for (storage::SpoolJournal::Entry& from : *raw) {
      TACHO_CHECK(from.position >= sequence);
      if (from.position >= synced_end_ || left_out_.contains(from.position)) continue;
      if (auto message = SpooledMessage::Of(std::move(from.bytes))) {
        entries.push_back({from.position, *std::move(message)});
        continue;
      }
      TACHO_ASSIGN_OR_RETURN(
          auto gap, StandIn(from.position, 0, SpoolLoss::kDamaged, "the entry is no message"));
      entries.push_back({from.position, std::move(gap)});
    }
    if (!entries.empty() || raw->empty()) return entries;
    sequence = raw->back().position + 1;  // All of these were given up.
  }
}

absl::Status Spool::Trim(uint64_t sequence) {
  absl::MutexLock lock(&mutex_);
  const uint64_t before = journal_->bytes();
  TACHO_RETURN_IF_ERROR(journal_->Trim(sequence));
  unsure_drop_.reset();  // It can no longer be told what the collector got and what was dropped.
  trimmed_bytes_ += before - std::min(before, journal_->bytes());
  if (trimmed_bytes_ >= kReleasedBytes) {
    trimmed_bytes_ = 0;
    journal_->ReleaseRoom().IgnoreError();  // Again when more is trimmed.
  }
  return AfterTrim();
}

absl::Status Spool::AfterTrim() {
  std::vector<Note> obsolete;
  for (const uint64_t mark : ages_.Trim(journal_->begin())) {
    obsolete.push_back({SpooledKey(mark), ""});
  }
  while (!left_out_.empty() && *left_out_.begin() < journal_->begin()) {
    obsolete.push_back({DroppedKey(*left_out_.begin()), ""});
    left_out_.erase(left_out_.begin());
  }
  if (!old_layouts_forgotten_ && journal_->begin() >= old_layouts_end_) {
    ForgetOldLayouts(&obsolete);
    old_layouts_forgotten_ = true;
  }
  // Should the disk refuse, they are found and removed in a later run.
  return obsolete.empty() ? absl::OkStatus() : journal_->WriteNotes(obsolete);
}

// Entries of earlier runs are gone, so what they alone referred to may go.
void Spool::ForgetOldLayouts(std::vector<Note>* obsolete) {
  for (auto it = layouts_.begin(); it != layouts_.end();) {
    if (it->second.defined) {
      ++it;
      continue;
    }
    obsolete->push_back({LayoutKey(it->first), ""});
    it = layouts_.erase(it);
  }
  // Only now: a note that the disk would not remove can have the same content as a later one. The
  // first of the two, which is the one that DefineLayout() finds, owns the text of both.
  for (auto it = layouts_by_content_.begin(); it != layouts_by_content_.end();) {
    it = layouts_.contains(it->second) ? std::next(it) : layouts_by_content_.erase(it);
  }
}

absl::Status Spool::Drop(uint64_t sequence, uint64_t rows, absl::string_view reason) {
  {
    absl::MutexLock lock(&mutex_);
    if (sequence < journal_->begin() || left_out_.contains(sequence)) return absl::OkStatus();
    const auto entries = journal_->Read(sequence, 1);
    if (!entries.ok() && !absl::IsDataLoss(entries.status())) return entries.status();
    std::optional<v1::Gap> gap;
    if (entries.ok() && !entries->empty()) gap = StandInOf(entries->front().bytes);
    absl::Status status = gap ? LeaveOut(sequence, gap->rows(), gap->reason())
                              : StandIn(sequence, rows, SpoolLoss::kRefused, reason).status();
    if (!status.ok()) return status;
  }
  TellListener();
  return absl::OkStatus();
}

absl::StatusOr<SpooledMessage> Spool::StandIn(uint64_t sequence, uint64_t rows, SpoolLoss loss,
                                              absl::string_view reason) {
  v1::ClientMessage gap = GapOver(sequence, rows, reason);
  gap.mutable_gap()->set_sequence(sequence);
  auto message = SpooledMessage::Of(gap.SerializeAsString());
  TACHO_CHECK(message.has_value());
  TACHO_RETURN_IF_ERROR(journal_->Replace(sequence, message->bytes()));

  ++stats_.Of(loss).messages;
  stats_.Of(loss).rows += rows;
  if (const auto line = losses_.Add(sequence, rows, reason, options_.now())) {
    options_.log.Warn(*line);
  }
  return *std::move(message);
}

absl::Status Spool::LeaveOut(uint64_t sequence, uint64_t rows, absl::string_view reason) {
  v1::ClientMessage message = GapOver(sequence, rows, reason);
  absl::Status status = Append({&message, 1}, {}, {{DroppedKey(sequence), "1"}});
  if (status.ok()) left_out_.insert(sequence);
  return status;
}

absl::Status Spool::GiveUpDamaged(uint64_t sequence) {
  const absl::string_view reason = "the entry is damaged on the agent's disk";
  if (auto gap = StandIn(sequence, 0, SpoolLoss::kDamaged, reason); !gap.ok()) return gap.status();
  // The block that the entry was in may be broken: then a stand-in cannot be read either.
  if (!absl::IsDataLoss(journal_->Read(sequence, 1).status())) return absl::OkStatus();
  return LeaveOut(sequence, 0, reason);
}

void Spool::SetDurableAhead(std::vector<v1::SequenceRange> ranges) {
  absl::MutexLock lock(&mutex_);
  durable_ahead_ = std::move(ranges);
}

}  // namespace tacho::agent
