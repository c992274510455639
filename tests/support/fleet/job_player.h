// Plays one job: what its tasks would record, when they would, into rings of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/support/fleet/chip_model.h"
#include "tests/support/fleet/fault.h"
#include "tests/support/fleet/job_model.h"
#include "tests/support/fleet/task_record.h"

namespace tacho::fleet {

// Something that happened, for whoever checks what is made of it.
struct Happening {
  int64_t time_ns = 0;
  std::string what;  // "started", "fault", "hung", "ended".
  std::string job;
  uint32_t attempt = 0;
  int64_t step = 0;             // The first step concerned.
  std::vector<uint32_t> tasks;  // The tasks concerned; empty: all.
  std::string fault;            // Its line.
};

struct PlayerOptions {
  std::string ring_root;  // The rings of host H lie in <ring_root>/H.
  uint64_t ring_bytes = uint64_t{1} << 20;
  uint64_t seed = 1;
  int64_t begin_ns = 0;
  std::function<void(const Happening&)> tell;  // May be null.
};

// One thread. Its time is what the caller passes: nothing here looks at a clock.
class JobPlayer {
 public:
  JobPlayer(const JobSpec& spec, PlayerOptions options);

  static constexpr int64_t kNever = INT64_MAX;
  // When the next thing happens.
  int64_t next_ns() const { return next_ns_; }
  void PlayNext();

  // Takes effect at the end of the running step, or at the end of the fault's step, or at once in a
  // job that does not step.
  //   INVALID_ARGUMENT  the job has no such task, host or chip.
  absl::Status Apply(const Fault& fault, int64_t now_ns);

  const JobSpec& spec() const { return model_.spec(); }
  uint32_t attempt() const { return attempt_; }
  int64_t step() const { return step_; }
  const char* phase() const;
  // The state of the task's chip.
  ChipState ChipAt(uint32_t task, int64_t now_ns) const;

 private:
  enum class Phase : uint8_t { kDown, kInitializing, kCompiling, kStepping, kHung, kEnded };
  struct Task {
    std::optional<TaskRecord> record;
    TaskTrouble trouble;
    bool hung = false;
    bool crashed = false;
    ChipState chip;
    std::optional<int64_t> leaking_since_ns;
    double leak_per_second = 0;
  };

  void Start();
  void BeginStep();
  void FinishStep();
  void Hang();
  void Take(const Fault& fault);
  void TakeOn(const Fault& fault, Task* task);
  void Restart(const Fault& fault);
  void End(const std::string& status, const Fault& fault);
  void Recover();
  void SetActivity(Activity activity);
  bool anybody_missing() const;
  std::vector<uint32_t> TasksOf(const Fault& fault) const;
  double LossFactor() const;
  void Tell(const std::string& what, std::vector<uint32_t> tasks, const std::string& fault) const;

  const JobModel model_;
  const PlayerOptions options_;
  std::vector<Task> tasks_;
  std::vector<Fault> waiting_;
  Phase phase_ = Phase::kDown;
  int64_t now_ns_;
  int64_t next_ns_;
  uint32_t attempt_ = 0;
  int64_t step_ = 0;  // The running one.
  int64_t checkpoint_ = 0;
  JobStep current_;
  bool poisoned_ = false;
  std::optional<int64_t> spike_step_;
  double spike_factor_ = 1;
};

}  // namespace tacho::fleet
