// Figures of every live job, such as its ledger, always at hand. A background thread makes those of
// each job again and again, from all that the store holds, so that late rows, imports and a restart
// of the collector lead to the same figures.
//
// The cost is bounded: the thread rests after each job for long enough to stay within `share` of
// its time. With many or long jobs the figures are renewed less often.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/store.h"

namespace tacho::server::goodput {

struct JobRoundsOptions {
  const storage::Store* store = nullptr;  // Not owned; must outlive the rounds.
  std::function<absl::Time()> now = absl::Now;
  absl::Duration interval = absl::Seconds(10);  // No job's figures are made more often.
  // A job without newer rows gets new figures after this long, for rows that came late.
  absl::Duration idle_interval = absl::Minutes(2);
  absl::Duration linger = absl::Hours(1);  // Jobs leave this long after their newest row.
  size_t max_jobs = 1000;                  // Those with the newest rows.
  double share = 0.1;                      // The part of the thread's time that it may use.
  bool background = true;                  // Tests switch it off and call Refresh().
};

struct JobRoundsStats {
  size_t jobs = 0;            // With figures.
  size_t jobs_left_out = 0;   // More than max_jobs, at the last look.
  uint64_t made = 0;          // Figures, ever.
  uint64_t failed = 0;        // The store could not be read.
  double seconds = 0;         // Spent on them.
  double oldest_seconds = 0;  // Age of the oldest figures.
};

// Thread-safe, but for Start(), which is called once.
class JobRounds {
 public:
  // Of any type, which is the maker's business. Null: the job has nothing to show.
  using Figures = std::shared_ptr<const void>;
  // `before`: the job's figures as they are, or null. To be given up once `stopping` is true. After
  // an error the old figures stay.
  using Maker = std::function<absl::StatusOr<Figures>(const std::string& job, const Figures& before,
                                                      const std::atomic<bool>& stopping)>;

  JobRounds(JobRoundsOptions options, Maker maker);
  ~JobRounds();  // Stops.

  // The name is the thread's. Without a background nothing happens.
  void Start(const char* thread_name);
  // Gives up what is in the making and waits for that. The store is not read after this.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // What figures are made by has changed: those of all jobs are made again.
  void MakeAllAgain() ABSL_LOCKS_EXCLUDED(mutex_);

  // By name of the job. T is what the maker makes.
  template <typename T>
  std::vector<std::shared_ptr<const T>> Newest() const ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::shared_ptr<const T>> newest;
    absl::MutexLock lock(&mutex_);
    for (const auto& [job, entry] : entries_) {
      if (entry.figures != nullptr) {
        newest.push_back(std::static_pointer_cast<const T>(entry.figures));
      }
    }
    return newest;
  }
  JobRoundsStats Stats() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes what is due, once. Without rests if there is no background thread.
  void Refresh() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    Figures figures;  // Null: not to be shown.
    absl::Time made;
    int64_t last_row_ns = 0;
    uint64_t changes = 0;  // changes_ when they were made.
  };

  std::vector<storage::JobSummary> LiveJobs(absl::Time now, size_t* left_out) const;
  bool IsDue(const storage::JobSummary& job, absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Make(const storage::JobSummary& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether to go on.
  bool Rest(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);

  const JobRoundsOptions options_;
  const Maker maker_;
  std::atomic<bool> stopping_ = false;
  mutable absl::Mutex mutex_;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // Calls of MakeAllAgain().
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  JobRoundsStats stats_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tacho::server::goodput
