// The current conditions of all jobs, and the latest changes. The engine writes them; /metrics and
// queries read them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/conditions/condition_state.h"
#include "server/conditions/job_profile.h"
#include "server/conditions/window/finding.h"

namespace tacho::server::conditions {

// Immutable once it is on the board.
struct JudgedCondition {
  std::string job;
  uint32_t attempt = 0;
  std::string name;
  ConditionStatus status = ConditionStatus::kUnknown;
  Finding finding;
  int64_t since_ns = 0;
  int64_t changed_ns = 0;
  int64_t judged_ns = 0;
};
using JudgedConditionPtr = std::shared_ptr<const JudgedCondition>;
using JobConditions = std::vector<JudgedConditionPtr>;  // By name.

// Thread-safe.
class ConditionBoard {
 public:
  // Changes kept for followers: at 5,000 jobs, a few for each.
  static constexpr size_t kMaxChanges = 16'384;

  // Replaces the conditions of a job, which is judged with `profile`; `changes` are those that
  // changed. Empty `conditions` remove the job from the board.
  void Put(const std::string& job, JobConditions conditions, JobConditions changes,
           JobProfile profile = {}) ABSL_LOCKS_EXCLUDED(mutex_);

  // The conditions of one job; none if it is not on the board.
  JobConditions Of(absl::string_view job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The conditions of all jobs whose name `wanted` accepts, by job. `position`, if not null, is set
  // so that ChangesSince() returns what changes after this call.
  JobConditions All(absl::FunctionRef<bool(const std::string& job)> wanted,
                    uint64_t* position = nullptr) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The profiles of the jobs on the board whose name `wanted` accepts.
  std::map<std::string, JobProfile> Profiles(
      absl::FunctionRef<bool(const std::string& job)> wanted) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Appends what changed since *position, which All() or this function set, and moves it.
  //   RESOURCE_EXHAUSTED  there were more than kMaxChanges changes, and some are gone: call All().
  absl::Status ChangesSince(uint64_t* position, JobConditions* changes) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Called after each change, on the engine's thread: return fast. Set before the engine starts.
  void SetListener(std::function<void()> on_change) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, JobConditions, std::less<>> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, JobProfile> profiles_ ABSL_GUARDED_BY(mutex_);  // By job, as the others.
  std::deque<JudgedConditionPtr> changes_ ABSL_GUARDED_BY(mutex_);
  uint64_t end_ ABSL_GUARDED_BY(mutex_) = 0;  // Position behind the newest change.
  std::function<void()> on_change_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::conditions
