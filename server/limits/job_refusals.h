// Counts the refused samples of each job, so that its people find out why it is missing: also of a
// job that the store does not have, because all of it was refused or because it has expired since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tacho::server::limits {

struct JobRefusal {
  std::string reason;    // As in the reasons of tacho_ingest_samples_rejected_total: "too_old".
  uint64_t samples = 0;  // Since the entry was made; an event or an attribute counts as one.
  std::string example;   // The first, as metric{labels}.
  std::string detail;    // The rule, and how to keep it.
  absl::Time last;
};

// Thread-safe. Forgotten at a restart. Somebody who invents names makes no jobs, and takes no more
// memory than kJobs entries: when all are taken, the job with the fewest samples makes room.
class JobRefusals {
 public:
  static constexpr size_t kJobs = 1000;
  // A job that the store does not have is shown for so long after the last refusal: enough for
  // whoever looks for it, and a job of long ago does not stay for ever.
  static constexpr absl::Duration kRecent = absl::Hours(24);

  // `describe` fills in example and detail of a reason that is new to the job.
  void Add(absl::string_view job, absl::string_view reason, uint64_t samples, absl::Time now,
           absl::FunctionRef<void(JobRefusal*)> describe) ABSL_LOCKS_EXCLUDED(mutex_);

  // The reasons of a job, that with the most samples first; empty if nothing of it was refused.
  std::vector<JobRefusal> Of(absl::string_view job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The samples of all reasons.
  uint64_t SamplesOf(absl::string_view job) const ABSL_LOCKS_EXCLUDED(mutex_);

  struct RefusedJob {
    std::string name;
    absl::Time last;  // The newest refusal, for whatever reason.
  };
  // The jobs of which something was refused within kRecent before `now`.
  std::vector<RefusedJob> RecentJobs(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether this is one of them.
  bool IsRecent(absl::string_view job, absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Job {
    uint64_t samples = 0;
    absl::Time last;
    std::map<std::string, JobRefusal, std::less<>> reasons;
  };
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Job> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::limits
