#include "agent/stream/acknowledged.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/spool/spool_notes.h"

namespace tacho::agent {
namespace {

constexpr absl::Duration kNoteInterval = absl::Seconds(1);

// How many sequences of first..last the collector does not have.
uint64_t NotDurable(const v1::Welcome& welcome, uint64_t first, uint64_t last) {
  first = std::max(first, welcome.durable_sequence() + 1);
  if (first > last) return 0;
  uint64_t missing = last - first + 1;
  for (const v1::SequenceRange& range : welcome.durable_ahead()) {
    const uint64_t from = std::max(first, range.first());
    const uint64_t to = std::min(last, range.last());
    if (from <= to) missing -= std::min(missing, to - from + 1);
  }
  return missing;
}

}  // namespace

void Acknowledged::Load(const Spool& spool, absl::string_view agent_id,
                        absl::string_view collector) {
  key_ = absl::StrCat(kAcknowledgedPrefix, agent_id, "@", collector);
  if (!absl::SimpleAtoi(spool.ReadCheckpoint(key_), &highest_)) highest_ = 0;
  // Never beyond the spool's end, whatever damage left of it: the collector would count messages
  // that do not exist.
  highest_ = std::min(highest_, spool.end() - 1);
  noted_ = highest_;
}

void Acknowledged::Raise(uint64_t watermark) { highest_ = std::max(highest_, watermark); }

MissingMessages Acknowledged::Compare(const v1::Welcome& welcome, uint64_t spool_begin) {
  MissingMessages missing;
  missing.again = NotDurable(welcome, spool_begin, highest_);
  missing.gone = NotDurable(welcome, 1, std::min(highest_, spool_begin - 1));
  highest_ = welcome.durable_sequence();
  return missing;
}

void Acknowledged::Note(absl::Time monotonic_now, Spool* spool) {
  if (highest_ == noted_ || monotonic_now < next_note_) return;
  if (monotonic_now != absl::InfiniteFuture()) next_note_ = monotonic_now + kNoteInterval;
  const absl::Status written =
      spool->WriteCheckpoint({.key = key_, .value = absl::StrCat(highest_)});
  if (written.ok()) noted_ = highest_;
}

}  // namespace tacho::agent
