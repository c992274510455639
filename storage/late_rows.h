// Journal entries that recovery has left unread, because their job has more series than should be
// read before the store is ready. They wait until somebody needs the job.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "storage/model/series.h"

namespace tacho::storage {

// Thread-safe.
class LateRows {
 public:
  // Positions of a job ascend.
  void Add(JobId job, uint64_t position) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    positions_[job].push_back(position);
    oldest_ = std::min(oldest_.load(), position);
  }

  bool Has(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_) {
    if (oldest_ == UINT64_MAX) return false;
    absl::MutexLock lock(&mutex_);
    return positions_.contains(job);
  }
  std::vector<uint64_t> Of(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto found = positions_.find(job);
    return found == positions_.end() ? std::vector<uint64_t>() : found->second;
  }
  std::vector<JobId> Jobs() const ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<JobId> jobs;
    if (oldest_ == UINT64_MAX) return jobs;
    absl::MutexLock lock(&mutex_);
    for (const auto& [job, positions] : positions_) jobs.push_back(job);
    return jobs;
  }
  // The first of the job's rows are in the head now, or its job has gone with all of them.
  void Remove(JobId job, size_t entries = SIZE_MAX) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto found = positions_.find(job);
    if (found == positions_.end()) return;
    std::vector<uint64_t>& positions = found->second;
    if (entries >= positions.size()) {
      positions_.erase(found);
    } else {
      positions.erase(positions.begin(), positions.begin() + static_cast<ptrdiff_t>(entries));
    }
    NoteOldest();
  }

  // The journal must not be trimmed past this; UINT64_MAX if there are no late rows. To be asked
  // before the head is, which has the rows before they are removed here.
  uint64_t oldest() const { return oldest_; }

 private:
  void NoteOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    uint64_t oldest = UINT64_MAX;
    for (const auto& [job, positions] : positions_) oldest = std::min(oldest, positions.front());
    oldest_ = oldest;
  }

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<JobId, std::vector<uint64_t>> positions_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> oldest_ = UINT64_MAX;
};

}  // namespace tacho::storage
