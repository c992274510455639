#include "agent/spool/spool_ages.h"

#include <algorithm>

namespace tacho::agent {

void SpoolAges::NoticeClock(absl::Time now) {
  for (auto mark = marks_.rbegin(); mark != marks_.rend() && mark->before > now; ++mark) {
    mark->before = now;
  }
  newest_ = std::min(newest_, now);
  mark_due_ = std::min(mark_due_, now + max_age_ / kMarks);
}

std::optional<SpoolAges::Mark> SpoolAges::Due(uint64_t sequence, absl::Time now) const {
  if (max_age_ == absl::ZeroDuration() || now < mark_due_ || newest_ == absl::InfinitePast()) {
    return std::nullopt;
  }
  return Mark{sequence, std::min(newest_, now)};
}

void SpoolAges::Spooled(const std::optional<Mark>& mark, uint64_t end, absl::Time now) {
  NoticeClock(now);
  if (mark) marks_.push_back(*mark);
  if (mark || newest_ == absl::InfinitePast()) mark_due_ = now + max_age_ / kMarks;
  end_ = end;
  newest_ = now;
}

std::optional<SpoolAges::Mark> SpoolAges::Opened(uint64_t end, absl::Time now) {
  end_ = end;
  newest_ = now;
  NoticeClock(now);
  mark_due_ = (marks_.empty() ? now : marks_.back().before) + max_age_ / kMarks;
  // Restarts in quick succession make no mark each, and do not make what waits young again either.
  const bool marked = !marks_.empty() && (marks_.back().sequence == end || now < mark_due_);
  if (marked || max_age_ == absl::ZeroDuration()) return std::nullopt;
  marks_.push_back({end, now});
  mark_due_ = now + max_age_ / kMarks;
  return marks_.back();
}

uint64_t SpoolAges::TooOldBefore(absl::Time now) {
  if (max_age_ == absl::ZeroDuration()) return 0;
  NoticeClock(now);
  if (newest_ + max_age_ <= now) return end_;
  uint64_t before = 0;
  for (const Mark& mark : marks_) {
    if (mark.before + max_age_ > now) break;
    before = mark.sequence;
  }
  return before;
}

std::vector<uint64_t> SpoolAges::Trim(uint64_t begin) {
  std::vector<uint64_t> forgotten;
  while (!marks_.empty() && marks_.front().sequence <= begin) {
    forgotten.push_back(marks_.front().sequence);
    marks_.pop_front();
  }
  return forgotten;
}

}  // namespace tacho::agent
