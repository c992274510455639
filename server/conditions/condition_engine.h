// Judges every job every few seconds, with the detectors of its settings.
//
//   committed rows, events ─▶ subscription ─▶ WindowBuilder ─▶ detectors ─▶ ConditionState
//                                                     ─▶ ConditionBoard (/metrics, queries)
//                                                     ─▶ events "condition_raised", "…_cleared"
//
// One thread does all of it, and no commit waits for it. If it falls behind, it reads what it
// missed from the store. Each change is stored as an event of its job exactly once: after a start,
// the stored events show which conditions are open.
#pragma once

#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/log.h"
#include "server/conditions/baselines.h"
#include "server/conditions/condition_board.h"
#include "server/conditions/condition_metrics.h"
#include "server/conditions/condition_settings.h"
#include "server/conditions/condition_state.h"
#include "server/conditions/job_profile.h"
#include "server/conditions/profile_schedule.h"
#include "server/conditions/window/window_builder.h"
#include "server/ingest/agent_ledger.h"
#include "server/process/reloadable.h"
#include "storage/store.h"

namespace tacho::server::conditions {

struct ConditionEngineOptions {
  storage::Store* store = nullptr;              // Not owned; closed after Stop().
  const ingest::AgentLedger* agents = nullptr;  // Not owned; null: no agents are known.
  std::shared_ptr<const ConditionSettings> settings;
  std::function<absl::Time()> now = absl::Now;  // The clock of StoreOptions::now.
  prometheus::Registry* registry = nullptr;     // Not owned.
  log::Log log;
  // Called on the engine's thread when Stalled is raised, if conditions.stacks asks for it; must
  // return at once. May be null.
  std::function<void(const std::string& job)> on_stalled;
  // Called on the engine's thread when conditions.profiler wants profiles of trainers; must return
  // at once. False: not now; it is asked again at the next judgement. May be null.
  std::function<bool(const ProfileOrder& order)> on_profile;
  // Changes that may wait for the thread; beyond this it reads them from the store.
  uint64_t buffer_bytes = 64u << 20;
};

// Start(), Stop() and destruction are for one thread; board() and Prepare() for any.
class ConditionEngine final : public process::Reloadable {
 public:
  explicit ConditionEngine(ConditionEngineOptions options);
  ~ConditionEngine() override { Stop(); }

  void Start();
  // Raised conditions stay open until the next start.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  ConditionBoard& board() { return board_; }

  // Takes the section `conditions`.
  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Use(std::shared_ptr<const ConditionSettings> settings) ABSL_LOCKS_EXCLUDED(mutex_);

  // One round of the thread: takes what was committed, and judges the jobs that are due. For tests,
  // instead of Start().
  void RunOnce() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct JudgedJob {
    std::map<std::string, ConditionState> states;
    absl::Time due = absl::InfinitePast();
    absl::Time frozen_until = absl::InfinitePast();
    // Facts about the judged attempt.
    bool facts_known = false;
    uint32_t attempt = 0;
    absl::Time facts_due;
    int64_t attempt_first_ns = 0;
    std::map<std::string, std::string> attributes;
    std::vector<Baseline> baselines;
    bool ended = false;  // At its last judgement.
    PhaseRecord record;
    JobProfile profile;  // The one of its last judgement.
    ProfileSchedule profiles;
  };
  // Events and the results of appending them. The store shares it, and may outlive the engine.
  struct Appended {
    absl::Mutex mutex;
    // Events that are not durable yet, by number, in the order of the changes.
    std::map<uint64_t, storage::Event> unsettled ABSL_GUARDED_BY(mutex);
    std::vector<uint64_t> refused ABSL_GUARDED_BY(mutex);
    uint64_t stored ABSL_GUARDED_BY(mutex) = 0;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeSettings() ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeChanges();
  void AddRowsByLayout(const std::vector<storage::Change>& changes);
  // Fills the windows of all recent jobs from the store, with what came since then.
  void LoadAll(absl::Time since);
  void CloseAbandoned(const std::vector<storage::JobSummary>& jobs, absl::Time now);

  JudgedJob* FindOrAddJob(const std::string& name, absl::Time now);
  void Restore(const std::string& name, JudgedJob* job);
  void Judge(const std::string& name, JudgedJob* job, absl::Time now);
  void RefreshFacts(const std::string& name, JudgedJob* job, absl::Time now);
  void CompleteWindow(const JudgedJob& job, JobWindow* window) const;
  // Sets the job's profile, and returns the detectors to judge it with.
  const Detectors& ChooseProfile(const JobWindow& window, JudgedJob* job) const;
  // Has the trainers' profiles taken, if they are due.
  void TakeProfiles(const JobWindow& window, JudgedJob* job, absl::Time now) const;
  Finding RunDetector(const Detector& detector, const JudgedJob& job,
                      const JobWindow& window) const;
  void Publish(const std::string& name, const JudgedJob& job, uint32_t attempt, int64_t now_ns,
               const std::set<std::string>& changed);
  // Ends all conditions of the job and removes it from the board.
  void LetGo(const std::string& name, JudgedJob* job, absl::Time now, const std::string& reason,
             const std::string& message);
  void NoteStragglers(const JudgedCondition& condition);
  void ForgetHosts(absl::Time now);

  void Store(storage::Event event);
  std::vector<storage::Event> UnsettledOf(const std::string& job) const;
  void StoreAgainWhatWasRefused();
  void ShowFigures();

  const ConditionEngineOptions options_;
  ConditionMetrics metrics_;
  ConditionBoard board_;
  const std::shared_ptr<Appended> appended_ = std::make_shared<Appended>();

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const ConditionSettings> next_settings_ ABSL_GUARDED_BY(mutex_);

  // Used by the thread alone.
  absl::Time forget_due_ = absl::InfinitePast();
  std::shared_ptr<const ConditionSettings> settings_;
  std::unique_ptr<WindowBuilder> windows_;
  std::unique_ptr<storage::Subscription> subscription_;
  Baselines baselines_;
  absl::Time taken_until_;  // The windows hold all that was committed before.
  absl::Time load_again_ = absl::InfinitePast();
  bool started_ = false;  // The state before the start is known.
  bool windows_empty_ = true;
  std::map<std::string, JudgedJob> jobs_;
  std::map<std::string, std::set<std::string>> straggled_;  // Host: jobs.
  uint64_t events_ = 0;                                     // Ever.
  std::vector<uint64_t> to_store_;

  std::thread thread_;
};

}  // namespace tacho::server::conditions
