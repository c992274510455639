// Which small frames are worth merging: what is known of them, in memory, and the rules.
//
// A set of frames that is merged is consecutive in position among the frames of its layout and day,
// so that nothing of the layout's own lies between them in time of writing.
//
// Rules. A frame is small with fewer than half the rows that a frame should have. Small frames that
// lie in a row are merged as soon as they make a whole frame: each of their values is then
// rewritten once. What is left over is merged when nothing has been sealed into the layout's day
// for a while, and if the largest of them at least doubles, or the day is over: at most
// log2(rows of a frame) times more. A layout's only small frame of a day stays: there is nothing to
// merge it with.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "storage/codec/frame.h"
#include "storage/codec/keys.h"

namespace tacho::storage {

// One thread at a time.
class MergeCandidates {
 public:
  // Notes a frame; does nothing if it is known already. A frame of its layout should have
  // `target_rows` rows.
  void Add(const FrameRef& frame, uint32_t target_rows, absl::Time now);

  // Frames of one layout and day, ascending in position: at least two.
  using Set = std::vector<FrameRef>;
  // Takes a set that is due; empty if there is none. Frames at or above the position `sealed_up_to`
  // stay out: others may still be sealed below them. Answer with Replace().
  Set TakeDue(FramePosition sealed_up_to, absl::Duration quiet, absl::Time now);
  // `set` has become `merged`.
  void Replace(const Set& set, const FrameRef& merged);
  // The frames of the set with positions up to `position` and those above it must never meet.
  void Separate(const Set& set, FramePosition position);
  // Nothing of this layout and day is to be merged.
  void Forget(int64_t day, LayoutId layout) { groups_.erase({day, layout}); }

  // Forgets the days that ended `quiet` ago and have seen no frame since; returns them.
  std::set<int64_t> ForgetDoneDays(absl::Duration quiet, absl::Time now);

  size_t size() const { return groups_.size(); }

 private:
  struct Entry {
    FramePosition position = 0;
    int64_t first_time_ns = 0;
    uint32_t rows = 0;  // 0: no frame, but something that must not be merged across.
  };
  struct Group {
    JobId job = 0;
    uint32_t target_rows = 0;
    absl::Time last_added;
    std::vector<Entry> entries;  // Ascending in position.
  };
  // A run of entries [first, second) of the group that is due; empty if there is none.
  std::pair<size_t, size_t> FindDue(const Group& group, bool is_quiet, bool day_is_over,
                                    FramePosition sealed_up_to) const;
  static void Tidy(Group* group);

  absl::flat_hash_map<std::pair<int64_t, LayoutId>, Group> groups_;
};

}  // namespace tacho::storage
