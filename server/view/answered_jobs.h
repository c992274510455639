// Remembers which jobs readers of the fleet have been told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace tacho::server::view {

using JobNames = std::vector<std::string>;  // Ascending.

// Which jobs an answer had, by its revision: what tells a reader which jobs are gone, and which
// have come although nothing of them changed. Readers that ask for the same, with the same rights,
// share it. Answers that nobody asked for lately are forgotten; their readers get a complete
// answer. Thread-safe.
class AnsweredJobs {
 public:
  explicit AnsweredJobs(size_t max_bytes = size_t{16} << 20) : max_bytes_(max_bytes) {}

  // Null: not known, or no longer.
  std::shared_ptr<const JobNames> Find(const std::string& question, uint64_t revision)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Remember(const std::string& question, uint64_t revision, JobNames names)
      ABSL_LOCKS_EXCLUDED(mutex_);
  size_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);  // At most about max_bytes.

 private:
  // The same jobs from one revision to another.
  struct Answers {
    uint64_t first = 0;
    uint64_t last = 0;
    std::shared_ptr<const JobNames> names;
    size_t bytes = 0;
  };
  struct Question {
    std::deque<Answers> answers;  // Ascending.
    uint64_t used = 0;
  };
  static constexpr size_t kMaxAnswers = 8;  // For one question: its readers are a few polls apart.

  void DropOldest(Question* question) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_bytes_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Question> questions_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::server::view
