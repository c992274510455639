// The part of Spool that keeps it within its bounds.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/spool/spool.h"
#include "agent/spool/spool_losses.h"
#include "proto/base/check.h"

namespace tacho::agent {
namespace {

// Read at once when room is made.
constexpr uint64_t kRoomReadBytes = 1u << 20;
// When room is made, so much more than needed is: one Gap then stands for many entries.
constexpr uint64_t kSpareFraction = 16;
// At most this much of what is too old is dropped at once: it is read first, and the source that
// has just appended waits meanwhile.
constexpr uint64_t kMostAgedBytes = 32u << 20;

const char* ReasonOf(SpoolLoss loss) {
  return loss == SpoolLoss::kAge ? "the agent's spool kept it for longer than spool.max_age"
                                 : "the agent's spool was full";
}
constexpr char kBothReasons[] =
    "the agent's spool was full, or kept it for longer than spool.max_age";

}  // namespace

void Spool::MakeRoom() {
  SettleDrop();
  const uint64_t too_old = ages_.TooOldBefore(options_.now());
  if (too_old > std::max(journal_->begin(), only_gaps_before_)) {
    DropOldest(too_old, kMostAgedBytes, SpoolLoss::kAge);
  }

  DropPast(options_.max_bytes);
}

void Spool::DropPast(uint64_t max_bytes) {
  if (journal_->bytes() <= max_bytes) return;
  const uint64_t surplus = journal_->bytes() - (max_bytes - max_bytes / kSpareFraction);
  DropOldest(journal_->end() - 1, surplus, SpoolLoss::kBytes);  // The newest stays.
}

void Spool::ShrinkTo(uint64_t max_bytes) {
  {
    absl::MutexLock lock(&mutex_);
    SettleDrop();
    DropPast(max_bytes);
  }
  TellListener();
}

void Spool::DropOldest(uint64_t end, uint64_t bytes, SpoolLoss loss) {
  // Before what is dropped now lies what was dropped last.
  bool extend =
      dropped_gap_.sequence() >= read_end_ && dropped_gap_.lost().last() + 1 == journal_->begin();
  SpoolLosses losses;
  if (extend) losses.Continue(dropped_gap_);
  const uint64_t kept = AddUpOldest(end, bytes, &losses);
  if (kept == journal_->begin()) return;
  // Gaps have no age. In a long outage one Gap would replace another without end.
  if (losses.messages() == 0 && loss == SpoolLoss::kAge) {
    only_gaps_before_ = kept;
    return;
  }

  std::vector<v1::ClientMessage> gaps = losses.Gaps(ReasonOf(loss));
  // Others come with it, and in one write they can only be appended; or it goes itself.
  if (extend && (gaps.size() > 1 || dropped_gap_.sequence() < kept)) {
    extend = false;
    losses = SpoolLosses();
    if (AddUpOldest(end, bytes, &losses) != kept) return;
    gaps = losses.Gaps(ReasonOf(loss));
  }
  if (extend) {
    v1::Gap* gap = gaps[0].mutable_gap();
    TACHO_CHECK(gaps.size() == 1 && dropped_gap_.sequence() >= kept);
    gap->set_sequence(dropped_gap_.sequence());
    if (dropped_gap_.reason() != ReasonOf(loss)) gap->set_reason(kBothReasons);
  }
  const absl::Status told =
      extend ? journal_->Replace(dropped_gap_.sequence(), gaps[0].SerializeAsString(), kept)
             : AppendMessages(gaps, {}, kept);
  TACHO_CHECK(!gaps.empty());
  Dropping drop = {.kept = kept, .loss = loss, .losses = losses, .gap = gaps.back().gap()};
  if (!told.ok()) {
    unsure_drop_ = std::move(drop);
    return;
  }
  unsure_drop_.reset();  // It was not made, or the journal would have refused this one first.
  CountDrop(drop);
}

void Spool::SettleDrop() {
  if (!unsure_drop_.has_value()) return;
  const Dropping drop = *std::exchange(unsure_drop_, std::nullopt);
  if (journal_->begin() >= drop.kept) CountDrop(drop);
}

void Spool::CountDrop(const Dropping& drop) {
  const SpoolLoss loss = drop.loss;
  const SpoolLosses& losses = drop.losses;
  dropped_gap_ = drop.gap;
  AfterTrim().IgnoreError();  // A later run removes what this one could not.
  SpoolStats::Lost& lost = stats_.Of(loss);
  lost.messages += losses.messages();
  lost.rows += losses.rows();
  if (losses.messages() == 0) return;
  const std::string bound =
      loss == SpoolLoss::kAge
          ? absl::StrCat("spool.max_age is ", absl::FormatDuration(options_.max_age))
          : absl::StrCat("the spool is full (", options_.max_bytes, " bytes)");
  options_.log.Warn("dropped the oldest messages: the collector has been out of reach for too long",
                    {{"reason", bound}, {"messages", losses.messages()}, {"rows", losses.rows()}});
}

uint64_t Spool::AddUpOldest(uint64_t end, uint64_t bytes, SpoolLosses* losses) {
  uint64_t at = journal_->begin();
  uint64_t freed = 0;
  while (freed < bytes && at < end) {
    auto entries = journal_->Read(at, kRoomReadBytes);
    if (absl::IsDataLoss(entries.status())) {
      losses->AddUncounted(at++);
      continue;
    }
    if (!entries.ok() || entries->empty()) return journal_->begin();
    for (storage::SpoolJournal::Entry& entry : *entries) {
      if (freed >= bytes || at >= end) break;
      freed += entry.bytes.size();
      const auto message = SpooledMessage::Of(std::move(entry.bytes));
      if (IsSettled(at) || !message) {
        losses->AddUncounted(at);
      } else {
        losses->Add(at, *message);
      }
      ++at;
    }
  }
  return at;
}

bool Spool::IsSettled(uint64_t sequence) const {
  if (left_out_.contains(sequence)) return true;
  return std::any_of(durable_ahead_.begin(), durable_ahead_.end(),
                     [sequence](const v1::SequenceRange& range) {
                       return range.first() <= sequence && sequence <= range.last();
                     });
}

}  // namespace tacho::agent
