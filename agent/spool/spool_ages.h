// How old spooled entries are, known by a few marks however many there are.
//
// A mark says that every entry before a sequence was spooled at a time or earlier. One is made with
// the first entry after each 64th of the longest age, so an entry counts as too old when it is
// up to a 64th older than that, and never while it is younger.
//
// Times are the machine's, since nothing else goes on counting over restarts. Should the clock be
// set back, everything counts as spooled now.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace tacho::agent {

// Not thread-safe.
class SpoolAges {
 public:
  static constexpr int kMarks = 64;

  struct Mark {
    uint64_t sequence = 0;
    absl::Time before;  // When the newest entry before `sequence` was spooled.

    friend bool operator==(const Mark&, const Mark&) = default;
  };

  // Zero: no entry is ever too old, and no mark is made.
  explicit SpoolAges(absl::Duration max_age) : max_age_(max_age) {}

  // A mark that is kept with the entry `sequence`, which is spooled now; none if none is due.
  std::optional<Mark> Due(uint64_t sequence, absl::Time now) const;
  // Everything before `end` has been spooled now, with the mark if one was due.
  void Spooled(const std::optional<Mark>& mark, uint64_t end, absl::Time now);
  // A mark of an earlier run, in ascending order; then call Opened() with the end of that run.
  void Restore(const Mark& mark) { marks_.push_back(mark); }
  // Returns a mark to be kept, or none.
  std::optional<Mark> Opened(uint64_t end, absl::Time now);

  // Everything before this is too old; 0 if nothing is.
  uint64_t TooOldBefore(absl::Time now);

  // Forgets marks that say nothing of entries from `begin` on, and returns their sequences.
  std::vector<uint64_t> Trim(uint64_t begin);

 private:
  void NoticeClock(absl::Time now);

  absl::Duration max_age_;
  std::deque<Mark> marks_;                    // Ascending in both.
  uint64_t end_ = 0;                          // Behind the last entry spooled.
  absl::Time newest_ = absl::InfinitePast();  // When the last of it was, or earlier.
  absl::Time mark_due_ = absl::InfinitePast();
};

}  // namespace tacho::agent
