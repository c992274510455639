#include "tests/support/fleet/job_player.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::fleet {
namespace {

constexpr double kInitSteps = 5;  // How long things take, in steps.
constexpr double kCompileSteps = 20;
constexpr double kSpikeSteps = 15;  // Until a spike has fallen to 1/e.
constexpr double kDefaultSlow = 1.5, kDefaultInput = 20, kDefaultSpike = 4, kDefaultThrottle = 0.6;

int64_t Nanoseconds(double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); }

using Field = client::Recorder::EventField;

}  // namespace

JobPlayer::JobPlayer(const JobSpec& spec, PlayerOptions options)
    : model_(spec, options.seed),
      options_(std::move(options)),
      tasks_(spec.tasks),
      now_ns_(options_.begin_ns),
      next_ns_(options_.begin_ns) {
  SetActivity(Activity::kIdle);
}

const char* JobPlayer::phase() const {
  constexpr std::array<const char*, 6> kNames = {"down",     "initializing", "compiling",
                                                 "stepping", "hung",         "ended"};
  return kNames.at(static_cast<size_t>(phase_));
}

void JobPlayer::PlayNext() {
  now_ns_ = next_ns_;
  const double step_seconds = spec().step_seconds;
  switch (phase_) {
    case Phase::kDown:
      Start();
      phase_ = Phase::kInitializing;
      next_ns_ += Nanoseconds(kInitSteps * step_seconds);
      return;
    case Phase::kInitializing:
      for (Task& task : tasks_) {
        task.record->Event("initialized", now_ns_, "Connected to all tasks.");
        if (attempt_ > 0) {
          task.record->Event("checkpoint_restored", now_ns_,
                             absl::StrCat("Restored the weights of step ", step_, "."));
        }
        task.record->Event("compile_started", now_ns_, "Compiling the step.");
      }
      phase_ = Phase::kCompiling;
      next_ns_ += Nanoseconds(kCompileSteps * step_seconds);
      return;
    case Phase::kCompiling:
      for (Task& task : tasks_) task.record->Event("compiled", now_ns_, "Compiled the step.");
      phase_ = Phase::kStepping;
      SetActivity(Activity::kTraining);
      Tell("started", {}, "");
      BeginStep();
      return;
    case Phase::kStepping:
      FinishStep();
      return;
    case Phase::kHung:
    case Phase::kEnded:
      next_ns_ = kNever;
  }
}

void JobPlayer::Start() {
  for (uint32_t i = 0; i < tasks_.size(); ++i) {
    Task& task = tasks_[i];
    const std::string host = HostName(spec().HostOf(i));
    task.record.emplace(spec(),
                        TaskRecord::Place{.directory = absl::StrCat(options_.ring_root, "/", host),
                                          .task = i,
                                          .attempt = attempt_,
                                          .ring_bytes = options_.ring_bytes,
                                          .seed = options_.seed});
    task.record->Event("attempt_started", now_ns_, "Training on simulated chips.");
    task.record->Event("init_started", now_ns_, "Looking for the other tasks.");
    if (attempt_ > 0) {
      task.record->Event("restore_started", now_ns_, "Reading the last checkpoint.");
    }
    task.chip.allocated = true;
  }
}

void JobPlayer::BeginStep() {
  std::vector<Fault> due;
  const auto later = std::stable_partition(waiting_.begin(), waiting_.end(), [&](const Fault& f) {
    return f.step.value_or(step_) > step_;
  });
  due.assign(later, waiting_.end());
  waiting_.erase(later, waiting_.end());
  for (const Fault& fault : due) Take(fault);
  if (phase_ != Phase::kStepping) return;
  std::vector<TaskTrouble> trouble;
  trouble.reserve(tasks_.size());
  for (const Task& task : tasks_) trouble.push_back(task.trouble);
  current_ = model_.Step(step_, trouble, LossFactor(), poisoned_);
  const double usual = spec().step_seconds / std::max(current_.seconds, 1e-9);
  for (Task& task : tasks_) task.chip.tensor_share = std::min(1.0, usual);
  next_ns_ = now_ns_ + Nanoseconds(current_.seconds);
}

void JobPlayer::FinishStep() {
  TaskRecord* const first = tasks_.front().record ? &*tasks_.front().record : nullptr;
  const auto event = [&](const char* kind, double before_end, const std::string& message) {
    if (first == nullptr || tasks_.front().hung || tasks_.front().crashed) return;
    first->Event(kind, now_ns_ - Nanoseconds(before_end), message);
  };
  const double evaluated = current_.eval_seconds, saved = current_.checkpoint_seconds;
  if (evaluated > 0) {
    event("eval_started", evaluated + saved, "Evaluating on held-out data.");
    event("eval_ended", saved, "Evaluated.");
  }
  if (saved > 0) event("checkpoint_started", saved, "Saving the weights.");
  for (uint32_t i = 0; i < tasks_.size(); ++i) {
    Task& task = tasks_[i];
    if (task.hung || task.crashed) continue;
    task.record->Step(current_, current_.tasks[i], step_, now_ns_);
    poisoned_ = poisoned_ || task.trouble.nan;
    task.trouble.nan = false;
  }
  if (anybody_missing()) return Hang();
  if (saved > 0) {
    checkpoint_ = step_;
    event("checkpoint_saved", 0, absl::StrCat("Saved the weights of step ", step_, "."));
  }
  if (++step_ >= spec().steps) return End("succeeded", {});
  BeginStep();
}

// The others have sent this step's work to their chips before, and record it; they then wait.
void JobPlayer::Hang() {
  phase_ = Phase::kHung;
  next_ns_ = kNever;
  std::vector<uint32_t> missing;
  for (uint32_t i = 0; i < tasks_.size(); ++i) {
    Task& task = tasks_[i];
    const bool stopped = task.hung || task.crashed;
    task.chip.activity = stopped ? Activity::kIdle : Activity::kWaiting;
    task.chip.idle_since_ns = now_ns_;
    if (stopped) missing.push_back(i);
  }
  Tell("hung", std::move(missing), "");
}

bool JobPlayer::anybody_missing() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const Task& task) { return task.hung || task.crashed; });
}

std::vector<uint32_t> JobPlayer::TasksOf(const Fault& fault) const {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < tasks_.size(); ++i) {
    if (fault.task && *fault.task != i) continue;
    if (!fault.host.empty() && HostName(spec().HostOf(i)) != fault.host) continue;
    if (fault.chip && *fault.chip != i % spec().tasks_per_host) continue;
    out.push_back(i);
  }
  return out;
}

absl::Status JobPlayer::Apply(const Fault& fault, int64_t now_ns) {
  if (TasksOf(fault).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", fault.text, "': job ", spec().name, " has ", spec().tasks, " tasks on ",
                     HostName(spec().first_host), " to ",
                     HostName(spec().first_host + spec().hosts() - 1), ", and none is this one"));
  }
  const bool stepping = phase_ != Phase::kHung && phase_ != Phase::kEnded;
  if (stepping || fault.step.value_or(step_) > step_) {
    waiting_.push_back(fault);
  } else {
    now_ns_ = std::max(now_ns_, now_ns);
    Take(fault);
  }
  return absl::OkStatus();
}

void JobPlayer::Take(const Fault& fault) {
  const std::vector<uint32_t> tasks = TasksOf(fault);
  Tell("fault", tasks.size() == tasks_.size() ? std::vector<uint32_t>() : tasks, fault.text);
  switch (fault.kind) {
    case FaultKind::kRestart:
      return Restart(fault);
    case FaultKind::kEnd:
      return End(fault.status, fault);
    case FaultKind::kRecover:
      return Recover();
    case FaultKind::kSpike:
      spike_step_ = step_;
      spike_factor_ = fault.factor.value_or(kDefaultSpike);
      return;
    default:
      for (const uint32_t task : tasks) TakeOn(fault, &tasks_[task]);
  }
}

void JobPlayer::TakeOn(const Fault& fault, Task* task) {
  ChipState& chip = task->chip;
  switch (fault.kind) {
    case FaultKind::kSlow:
      task->trouble.compute_factor = fault.factor.value_or(kDefaultSlow);
      return;
    case FaultKind::kInput:
      task->trouble.input_factor = fault.factor.value_or(kDefaultInput);
      return;
    case FaultKind::kHang:
      task->hung = true;
      return;
    case FaultKind::kCrash:
      task->crashed = true;
      chip.allocated = false;
      if (task->record) task->record->Abandon();
      return;
    case FaultKind::kNan:
      task->trouble.nan = true;
      return;
    case FaultKind::kDisagree:
      task->trouble.disagrees = true;
      return;
    case FaultKind::kLeak:
      task->leaking_since_ns = now_ns_;
      task->leak_per_second = fault.bytes_per_second;
      return;
    case FaultKind::kEcc:
      chip.ecc_uncorrected += 2;
      chip.ecc_corrected += 40;
      chip.xid_errors += 1;
      chip.remapped_rows += 1;
      return;
    case FaultKind::kThrottle:
      chip.clock_factor = std::min(1.0, fault.factor.value_or(kDefaultThrottle));
      chip.hot = true;
      task->trouble.compute_factor = 1 / chip.clock_factor;
      return;
    default:
      return;
  }
}

void JobPlayer::Recover() {
  for (uint32_t i = 0; i < tasks_.size(); ++i) {
    Task& task = tasks_[i];
    task.trouble = TaskTrouble();
    task.chip.clock_factor = 1;
    task.chip.hot = false;
    task.leaking_since_ns.reset();
    if (phase_ == Phase::kHung && task.hung) {
      task.record->Step(current_, current_.tasks[i], step_, now_ns_);
    }
    task.hung = false;
  }
  if (phase_ != Phase::kHung || anybody_missing()) return;
  phase_ = Phase::kStepping;
  SetActivity(Activity::kTraining);
  ++step_;
  BeginStep();
}

void JobPlayer::Restart(const Fault& fault) {
  for (Task& task : tasks_) {
    if (task.record && !task.crashed) {
      task.record->Event("preempted", now_ns_, "Restarted by the simulation.");
    }
    task = Task();
  }
  SetActivity(Activity::kIdle);
  poisoned_ = false;
  spike_step_.reset();
  step_ = fault.to_step.value_or(checkpoint_);
  ++attempt_;
  phase_ = Phase::kDown;
  next_ns_ = now_ns_ + Nanoseconds(fault.down_seconds);
}

void JobPlayer::End(const std::string& status, const Fault& fault) {
  const std::array<Field, 2> fields = {Field{"status", status},
                                       Field{"exit_code", status == "succeeded" ? "0" : "1"}};
  for (Task& task : tasks_) {
    if (task.record && !task.crashed) {
      task.record->Event("ended", now_ns_, absl::StrCat("The training ", status, "."), fields);
    }
    task.record.reset();
    task.chip.allocated = false;
  }
  SetActivity(Activity::kIdle);
  phase_ = Phase::kEnded;
  next_ns_ = kNever;
  Tell("ended", {}, fault.text);
}

void JobPlayer::SetActivity(Activity activity) {
  for (Task& task : tasks_) {
    task.chip.activity = activity;
    task.chip.idle_since_ns = now_ns_;
  }
}

double JobPlayer::LossFactor() const {
  if (!spike_step_ || step_ < *spike_step_) return 1;
  const auto since = static_cast<double>(step_ - *spike_step_);
  return 1 + (spike_factor_ - 1) * std::exp(-since / kSpikeSteps);
}

ChipState JobPlayer::ChipAt(uint32_t task, int64_t now_ns) const {
  const Task& of = tasks_.at(task);
  ChipState chip = of.chip;
  if (of.leaking_since_ns) {
    const double seconds = static_cast<double>(now_ns - *of.leaking_since_ns) / 1e9;
    chip.leaked_bytes = std::max(0.0, seconds) * of.leak_per_second;
  }
  return chip;
}

void JobPlayer::Tell(const std::string& what, std::vector<uint32_t> tasks,
                     const std::string& fault) const {
  if (!options_.tell) return;
  options_.tell({.time_ns = now_ns_,
                 .what = what,
                 .job = spec().name,
                 .attempt = attempt_,
                 .step = step_,
                 .tasks = std::move(tasks),
                 .fault = fault});
}

}  // namespace tacho::fleet
