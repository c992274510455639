// Acknowledgements that wait for the bucket. A request is in the bucket when everything that the
// database had written by then is: also a repeat, whose first copy may be on its way there still.
#include <utility>

#include "proto/base/clock.h"
#include "rocksdb/db.h"
#include "storage/codec/keys.h"
#include "storage/committer.h"

namespace tacho::storage {

void Committer::Hold(std::vector<Request>* group, const Staged& staged) {
  HeldGroup held{.sequence = parts_.db->GetLatestSequenceNumber(), .since = MonotonicNow()};
  for (size_t i = 0; i < group->size(); ++i) {
    Request& request = (*group)[i];
    if (request.upkeep || !staged.results[i].ok()) {
      request.done(staged.results[i]);
      continue;
    }
    held.bytes += request.queued;
    held.done.emplace_back(std::move(request.done), staged.results[i]);
  }
  for (const std::string& key : staged.changed) {
    held.durable.emplace_back(key, staged.origins.at(key).durable);
  }
  if (held.done.empty() && held.durable.empty()) return;
  std::vector<HeldGroup> ended;
  decltype(held.done) refused;
  absl::Status fence;
  {
    absl::MutexLock lock(&mutex_);
    fence = fence_;
    if (!fence.ok()) {
      refused = std::move(held.done);
    } else {
      held_bytes_ += held.bytes;
      held_.push_back(std::move(held));
      ended = TakeShipped();  // The shipper may have been faster than this thread.
    }
  }
  for (const auto& [done, result] : refused) done(fence);
  for (const HeldGroup& one : ended) {
    for (const auto& [done, result] : one.done) done(result);
  }
}

std::vector<Committer::HeldGroup> Committer::TakeShipped() {
  std::vector<HeldGroup> ended;
  while (!held_.empty() && held_.front().sequence <= shipped_) {
    HeldGroup& group = held_.front();
    held_bytes_ -= group.bytes;
    for (auto& [key, durable] : group.durable) {
      // An agent that was forgotten meanwhile stays forgotten.
      if (origins_.contains(key)) shared_[key] = std::move(durable);
    }
    ended.push_back(std::move(group));
    held_.pop_front();
  }
  return ended;
}

void Committer::NoteShipped(uint64_t sequence) {
  std::vector<HeldGroup> ended;
  {
    absl::MutexLock lock(&mutex_);
    if (sequence <= shipped_ || !fence_.ok()) return;
    shipped_ = sequence;
    ended = TakeShipped();
  }
  for (const HeldGroup& group : ended) {
    for (const auto& [done, result] : group.done) done(result);
  }
}

void Committer::Fence(const absl::Status& why) {
  std::deque<HeldGroup> ended;
  {
    absl::MutexLock lock(&mutex_);
    if (!fence_.ok()) return;
    fence_ = why;
    ended.swap(held_);
    held_bytes_ = 0;
  }
  for (const HeldGroup& group : ended) {
    for (const auto& [done, result] : group.done) done(why);
  }
}

Committer::Held Committer::held() const {
  absl::MutexLock lock(&mutex_);
  Held held{.bytes = held_bytes_};
  if (!held_.empty()) held.since = held_.front().since;
  return held;
}

}  // namespace tacho::storage
