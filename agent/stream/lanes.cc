// Chooses the next message: fresh rows first, then the backlog. The lanes read ahead some 256 KiB
// each, so memory does not grow with the spool.
#include "agent/stream/lanes.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {

void SendWindow::Sent(uint64_t sequence, uint64_t bytes) {
  TACHO_CHECK(sent_.empty() || sent_.back().sequence < sequence);
  sent_.push_back({.sequence = sequence, .bytes = bytes});
  ++messages_;
  bytes_ += bytes;
}

void SendWindow::MarkDurable(Message* message) {
  if (message->durable) return;
  TACHO_CHECK(messages_ > 0 && bytes_ >= message->bytes);
  message->durable = true;
  --messages_;
  bytes_ -= message->bytes;
}

void SendWindow::Durable(uint64_t watermark,
                         const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead) {
  while (!sent_.empty() && sent_.front().sequence <= watermark) {
    MarkDurable(&sent_.front());
    sent_.pop_front();
  }
  for (const v1::SequenceRange& range : ahead) {
    auto message =
        std::lower_bound(sent_.begin(), sent_.end(), range.first(),
                         [](const Message& m, uint64_t sequence) { return m.sequence < sequence; });
    for (; message != sent_.end() && message->sequence <= range.last(); ++message) {
      MarkDurable(&*message);
    }
  }
}

void SendWindow::Clear() {
  sent_.clear();
  messages_ = 0;
  bytes_ = 0;
}

namespace {

// Read ahead from the spool: some batches, so that the disk is not asked for each.
constexpr uint64_t kReadBytes = 256u << 10;

// Welcome's ranges may be as many as a collector likes; what lies beyond these is sent again.
constexpr int kMaxKnownRanges = 1024;

// The range that has `sequence`, or the end.
std::vector<v1::SequenceRange>::const_iterator FindRange(
    const std::vector<v1::SequenceRange>& ranges, uint64_t sequence) {
  return std::find_if(ranges.begin(), ranges.end(), [sequence](const v1::SequenceRange& range) {
    return range.first() <= sequence && sequence <= range.last();
  });
}

}  // namespace

Lanes::Lanes(const LaneOptions& options, Spool* spool, BacklogPace* pace,
             const v1::Welcome& durable)
    : spool_(spool), pace_(pace) {
  backlog_.window =
      SendWindow(kMaxBacklogBytes, std::clamp<uint64_t>(durable.limits().max_backlog_messages(),
                                                        kMaxBacklogMessages, kMostBacklogMessages));
  const int known = std::min(durable.durable_ahead_size(), kMaxKnownRanges);
  durable_ahead_.assign(durable.durable_ahead().begin(), durable.durable_ahead().begin() + known);
  highest_sent_ = durable.durable_sequence();
  for (const v1::SequenceRange& range : durable_ahead_) {
    highest_sent_ = std::max(highest_sent_, range.last());
  }
  split_ = std::max(highest_sent_ + 1, spool_->begin());
  const uint64_t end = spool_->synced_end();
  if (known >= kMaxAhead) {
    max_deferred_ = 0;
  } else if (end > split_ + options.short_backlog) {
    split_ = end;
  }
  TACHO_CHECK(split_ >= 1);
  fresh_.next = split_;
  backlog_.next = std::max(durable.durable_sequence() + 1, spool_->begin());
}

absl::Status Lanes::Choose(absl::Time now, Lane first) {
  next_choice_ = absl::InfiniteFuture();
  Prune(&fresh_);
  Prune(&backlog_);
  const Track* const before = std::exchange(chosen_, nullptr);
  const bool hold = std::exchange(held_, false);
  if (hold && before == &backlog_ && !backlog_.queue.empty()) {
    chosen_ = &backlog_;
    return absl::OkStatus();
  }
  const bool backlog_first = first == Lane::kBacklog && !hold;
  absl::Status status = backlog_first ? ChooseBacklog(now) : ChooseFresh();
  if (!status.ok() || chosen_ != nullptr) return status;
  return backlog_first ? ChooseFresh() : ChooseBacklog(now);
}

absl::Status Lanes::ChooseFresh() {
  if (!fresh_.window.HasRoom()) return absl::OkStatus();
  absl::Status status = RefillFresh();
  if (status.ok() && !fresh_.queue.empty()) chosen_ = &fresh_;
  return status;
}

absl::Status Lanes::ChooseBacklog(absl::Time now) {
  if (backlog_sent() || !backlog_.window.HasRoom()) return absl::OkStatus();
  if (!pace_->Ready(now)) {
    next_choice_ = pace_->next();
    return absl::OkStatus();
  }
  absl::Status status = ReadBacklog();
  if (status.ok()) status = ReadDeferred();
  if (status.ok() && !backlog_.queue.empty()) chosen_ = &backlog_;
  return status;
}

absl::Status Lanes::RefillFresh() {
  if (fresh_waits_ && !backlog_sent()) return absl::OkStatus();
  fresh_waits_ = false;
  while (fresh_.queue.empty() && !fresh_waits_) {
    TACHO_ASSIGN_OR_RETURN(auto entries, spool_->Read(fresh_.next, kReadBytes));
    if (entries.empty()) break;
    for (Spool::Entry& entry : entries) {
      if (entry.message.kind() == v1::ClientMessage::kAttributes && !backlog_sent()) {
        TACHO_CHECK(deferred_.empty() || deferred_.back() < entry.sequence);
        fresh_waits_ = deferred_.size() >= max_deferred_;
        if (fresh_waits_) break;
        deferred_.push_back(entry.sequence);
        fresh_.next = entry.sequence + 1;
        continue;
      }
      fresh_.next = entry.sequence + 1;
      fresh_.queue.push_back(std::move(entry));
    }
  }
  return absl::OkStatus();
}

absl::Status Lanes::ReadBacklog() {
  while (backlog_.queue.empty() && backlog_.next < split_) {
    const auto range = FindRange(durable_ahead_, backlog_.next);
    if (range != durable_ahead_.end()) {
      backlog_.next = range->last() + 1;
      continue;
    }
    TACHO_ASSIGN_OR_RETURN(auto entries, spool_->Read(backlog_.next, kReadBytes));
    backlog_.next = entries.empty() ? split_ : entries.back().sequence + 1;
    for (Spool::Entry& entry : entries) {
      const bool needed = entry.sequence < split_ &&
                          FindRange(durable_ahead_, entry.sequence) == durable_ahead_.end();
      if (needed) backlog_.queue.push_back(std::move(entry));
    }
  }
  return absl::OkStatus();
}

absl::Status Lanes::ReadDeferred() {
  while (backlog_.queue.empty() && !deferred_.empty()) {
    TACHO_ASSIGN_OR_RETURN(auto entries, spool_->Read(deferred_.front(), 1));
    const uint64_t sequence = deferred_.front();
    TACHO_CHECK(sequence < fresh_.next);
    deferred_.pop_front();
    if (entries.empty() || entries.front().sequence != sequence) continue;  // Given up.
    backlog_.queue.push_back(std::move(entries.front()));
  }
  return absl::OkStatus();
}

void Lanes::Prune(Track* track) const {
  if (track->queue.empty()) return;
  const uint64_t begin = spool_->begin();
  while (!track->queue.empty() && track->queue.front().sequence < begin) track->queue.pop_front();
}

Spool::Entry Lanes::Sent(uint64_t rows, absl::Time now) {
  TACHO_CHECK(chosen_ != nullptr && !chosen_->queue.empty());
  Spool::Entry entry = std::move(chosen_->queue.front());
  highest_sent_ = std::max(highest_sent_, entry.sequence);
  chosen_->window.Sent(entry.sequence, entry.message.bytes().size());
  if (chosen_ == &backlog_) pace_->Sent(rows, now);
  GaveUp();
  return entry;
}

void Lanes::GaveUp() {
  TACHO_CHECK(chosen_ != nullptr && !chosen_->queue.empty());
  chosen_->queue.pop_front();
  chosen_ = nullptr;
  held_ = false;
}

bool Lanes::IsPlausible(uint64_t watermark) {
  // Nothing that is below is in the spool any more, so nothing can be lost. A collector says so
  // when it has closed the hole before Hello's first sequence, perhaps before anything was sent.
  if (watermark < spool_->begin()) return true;
  if (watermark > highest_sent_) return false;
  Prune(&backlog_);
  if (backlog_.queue.empty() && backlog_.next <= watermark) {
    // Entries that were given up or dropped need not be sent. Only reading shows them.
    if (!ReadBacklog().ok()) return false;
  }
  if (!backlog_.queue.empty()) return watermark < backlog_.queue.front().sequence;
  return deferred_.empty() || watermark < deferred_.front();
}

bool Lanes::Durable(uint64_t watermark,
                    const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead) {
  if (!IsPlausible(watermark)) return false;
  fresh_.window.Durable(watermark, ahead);
  backlog_.window.Durable(watermark, ahead);
  return true;
}

}  // namespace tacho::agent
