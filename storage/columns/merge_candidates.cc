#include "storage/columns/merge_candidates.h"

#include <algorithm>

#include "proto/base/clock.h"

namespace tacho::storage {
namespace {

bool IsSmall(uint32_t rows, uint32_t target_rows) { return rows < target_rows / 2; }

bool DayIsOver(int64_t day, absl::Duration since, absl::Time now) {
  return DayOf(absl::ToUnixNanos(now - since)) > day;
}

}  // namespace

void MergeCandidates::Add(const FrameRef& frame, uint32_t target_rows, absl::Time now) {
  const bool small = IsSmall(frame.rows, target_rows);
  const std::pair key(frame.day, frame.layout);
  // Most layouts have no small frames: they take no memory.
  if (!small && !groups_.contains(key)) return;
  Group& group = groups_[key];
  const auto at = std::lower_bound(
      group.entries.begin(), group.entries.end(), frame.position,
      [](const Entry& entry, FramePosition position) { return entry.position < position; });
  if (at != group.entries.end() && at->position == frame.position) return;
  group.job = frame.job;
  group.target_rows = target_rows;
  group.last_added = now;
  group.entries.insert(at, {frame.position, frame.first_time_ns, small ? frame.rows : 0});
  Tidy(&group);
}

std::pair<size_t, size_t> MergeCandidates::FindDue(const Group& group, bool is_quiet,
                                                   bool day_is_over,
                                                   FramePosition sealed_up_to) const {
  const auto& entries = group.entries;
  for (size_t begin = 0; begin < entries.size();) {
    uint64_t rows = 0;
    uint32_t largest = 0;
    size_t end = begin;
    while (end < entries.size() && entries[end].rows > 0 && entries[end].position < sealed_up_to &&
           rows + entries[end].rows <= group.target_rows) {
      rows += entries[end].rows;
      largest = std::max(largest, entries[end].rows);
      ++end;
    }
    // Ended by a frame that would make it too long: a whole frame.
    const bool whole =
        end < entries.size() && entries[end].rows > 0 && entries[end].position < sealed_up_to;
    const bool worth = whole || (is_quiet && (day_is_over || rows >= 2 * uint64_t{largest}));
    if (end - begin >= 2 && worth) return {begin, end};
    begin = std::max(end, begin + 1);
  }
  return {0, 0};
}

MergeCandidates::Set MergeCandidates::TakeDue(FramePosition sealed_up_to, absl::Duration quiet,
                                              absl::Time now) {
  Set set;
  for (const auto& [key, group] : groups_) {
    const bool is_quiet = HasCome(group.last_added + quiet, now, quiet);
    const auto [begin, end] =
        FindDue(group, is_quiet, DayIsOver(key.first, quiet, now), sealed_up_to);
    for (size_t i = begin; i < end; ++i) {
      const Entry& entry = group.entries[i];
      set.push_back({.day = key.first,
                     .layout = key.second,
                     .first_time_ns = entry.first_time_ns,
                     .position = entry.position,
                     .rows = entry.rows,
                     .job = group.job});
    }
    if (!set.empty()) break;
  }
  return set;
}

void MergeCandidates::Replace(const Set& set, const FrameRef& merged) {
  const auto found = groups_.find({merged.day, merged.layout});
  if (found == groups_.end()) return;
  Group& group = found->second;
  std::erase_if(group.entries, [&](const Entry& entry) {
    return entry.position >= set.front().position && entry.position < merged.position;
  });
  for (Entry& entry : group.entries) {
    if (entry.position != merged.position) continue;
    entry.first_time_ns = merged.first_time_ns;
    entry.rows = IsSmall(merged.rows, group.target_rows) ? merged.rows : 0;
  }
  Tidy(&group);
}

void MergeCandidates::Separate(const Set& set, FramePosition position) {
  const auto found = groups_.find({set.front().day, set.front().layout});
  if (found == groups_.end()) return;
  auto& entries = found->second.entries;
  const auto at =
      std::lower_bound(entries.begin(), entries.end(), position,
                       [](const Entry& entry, FramePosition p) { return entry.position < p; });
  // A position that has a frame of this layout itself separates by being no candidate any more.
  if (at != entries.end() && at->position == position) {
    at->rows = 0;
  } else {
    entries.insert(at, {.position = position});
  }
  Tidy(&found->second);
}

std::set<int64_t> MergeCandidates::ForgetDoneDays(absl::Duration quiet, absl::Time now) {
  std::set<int64_t> done;
  std::set<int64_t> busy;
  for (const auto& [key, group] : groups_) {
    const bool is_done =
        DayIsOver(key.first, quiet, now) && HasCome(group.last_added + quiet, now, quiet);
    (is_done ? done : busy).insert(key.first);
  }
  for (const int64_t day : busy) done.erase(day);
  absl::erase_if(groups_, [&](const auto& entry) { return done.contains(entry.first.first); });
  return done;
}

void MergeCandidates::Tidy(Group* group) {
  auto& entries = group->entries;
  // An entry without a frame matters only between two that can be merged, and once.
  const auto no_frame = [](const Entry& entry) { return entry.rows == 0; };
  entries.erase(entries.begin(), std::find_if_not(entries.begin(), entries.end(), no_frame));
  entries.erase(
      std::unique(entries.begin(), entries.end(),
                  [&](const Entry& a, const Entry& b) { return no_frame(a) && no_frame(b); }),
      entries.end());
}

}  // namespace tacho::storage
