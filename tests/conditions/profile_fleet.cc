// Jobs are drawn from distributions, so that no limit is tuned to one shape; the seed makes them
// the same each time. What a detector says counts as it does for users: once it is raised.
#include "tests/conditions/profile_fleet.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/conditions/condition_state.h"
#include "server/conditions/job_profile.h"
#include "server/conditions/window/running_tasks.h"
#include "tests/conditions/synthetic_follower.h"
#include "tests/support/synthetic_window.h"

namespace tacho::conditions {
namespace {

using server::conditions::ConditionState;
using server::conditions::Detector;
using server::conditions::Finding;
using server::conditions::JobWindow;
using server::conditions::Judges;
using server::conditions::Profile;
using server::conditions::Signal;
using testing::Fault;
using testing::FaultKind;
using testing::FleetOptions;
using testing::SyntheticFleet;
using testing::SyntheticFollower;

constexpr double kInterval = 5;  // conditions.interval
// Before a fault there is little to see.
constexpr double kIntervalBefore = 15;
// When faults begin.
constexpr double kEarliest = 1500;
constexpr double kLatest = 2400;

struct Kind {
  const char* name;
  FaultKind fault;
  std::vector<std::string> conditions;  // Each of them finds it.
  std::vector<std::string> may_follow;
  double least = 0;  // Amount.
  double most = 0;
  bool all_hosts = false;
  bool synchronous = true;
};

const std::vector<Kind>& Kinds() {
  static const auto* const kKinds = new std::vector<Kind>{
      {"hang of one task", FaultKind::kHang, {"Stalled"}, {"TrainerSilent"}},
      {"hang before a task's last row", FaultKind::kHang, {"Stalled"}, {"TrainerSilent"}, 1, 1},
      {"input of all stops", FaultKind::kDataStall, {"Stalled"}, {"TrainerSilent"}, 0, 0, true},
      {"host loses its power",
       FaultKind::kHostDies,
       {"Stalled", "AgentSilent"},
       {"TrainerSilent", "TaskMissing"}},
      {"agent disconnected", FaultKind::kSilentAgent, {"AgentSilent"}, {}},
      {"a trainer records no more",
       FaultKind::kSilentTrainer,
       {"TrainerSilent", "TaskMissing"},
       {}},
      {"a task goes, others go on",
       FaultKind::kMissingTask,
       {"TaskMissing", "TrainerSilent"},
       {"LowUtilization"},
       0,
       0,
       false,
       false},
      {"slow host", FaultKind::kSlowHost, {"Straggling"}, {"ThroughputDropped"}, 0.2, 1},
      {"host slow now and then",
       FaultKind::kNowAndThen,
       {"Straggling"},
       {"ThroughputDropped"},
       0.6,
       2},
      {"slow input of a host",
       FaultKind::kSlowInput,
       {"Straggling"},
       {"ThroughputDropped"},
       0.3,
       1},
      {"all slower",
       FaultKind::kSlowdown,
       {"ThroughputDropped"},
       {"SlowerThanBaseline", "LowUtilization"},
       0.25,
       1,
       true},
      {"input-bound",
       FaultKind::kInputBound,
       {"InputBound", "ThroughputDropped"},
       {"LowUtilization"},
       0.3,
       0.6,
       true},
      {"throttled chip",
       FaultKind::kThrottle,
       {"Throttled", "Straggling"},
       {"ThroughputDropped", "LowUtilization"},
       0.3,
       0.6},
      {"XID errors", FaultKind::kXid, {"HardwareErrors"}, {}, 2, 10},
      {"slow link", FaultKind::kSlowLink, {"SlowCollective"}, {"ThroughputDropped"}, 0.15, 0.6},
      {"slow collective of all",
       FaultKind::kSlowComm,
       {"SlowCollective"},
       {"ThroughputDropped"},
       0.15,
       0.6,
       true},
  };
  return *kKinds;
}

double Draw(double least, double most, std::mt19937_64* random) {
  return std::uniform_real_distribution<double>(least, most)(*random);
}
// Evenly by its logarithm.
double DrawScale(double least, double most, std::mt19937_64* random) {
  return std::exp(Draw(std::log(least), std::log(most), random));
}

FleetOptions DrawJob(bool records, std::mt19937_64* random) {
  FleetOptions job;
  job.seed = (*random)();
  job.tasks = 1u << std::uniform_int_distribution<int>(2, 4)(*random);
  job.chips_per_host = 1;
  job.compute = DrawScale(0.4, 2, random);
  job.data_wait = job.compute * Draw(0.005, 0.04, random);
  job.comm = job.compute * Draw(0.05, 0.2, random);
  job.noise = DrawScale(0.004, 0.03, random);
  job.host_spread = DrawScale(0.002, 0.01, random);
  job.compile_seconds = DrawScale(20, 240, random);
  job.init_seconds = DrawScale(5, 60, random);
  const double step = job.compute + job.data_wait + job.comm;
  job.checkpoint_every = static_cast<uint32_t>(DrawScale(150, 1200, random) / step);
  job.checkpoint_seconds = DrawScale(2, 90, random);
  job.first_task_saves = Draw(0, 1, random) < 0.5;
  job.eval_every = static_cast<uint32_t>(DrawScale(200, 1800, random) / step);
  job.eval_seconds = DrawScale(5, 120, random);
  job.events = records;
  // Some trainers record how long these took, and some record nothing at all.
  if (!records && Draw(0, 1, random) < 0.5) {
    job.omit = {Signal::kCheckpointTime, Signal::kEvalTime};
  }
  return job;
}

// Some healthy jobs also write rows rarely, share hosts, or do not keep in step.
FleetOptions DrawHealthyJob(bool records, std::mt19937_64* random) {
  FleetOptions job = DrawJob(records, random);
  job.collectives = Draw(0, 1, random) < 0.5;
  if (Draw(0, 1, random) < 0.25) job.log_every = 10;
  if (Draw(0, 1, random) < 0.25) job.tasks_per_host = 4;
  job.synchronous = Draw(0, 1, random) < 0.85;
  return job;
}

// Judges one job as ConditionEngine does.
class Judged {
 public:
  Judged(const server::conditions::ConditionSettings& settings, const std::string& job)
      : rules_(settings.Of(job)) {}

  // The detectors whose condition is raised by this judgement, with their findings.
  std::vector<std::pair<std::string, Finding>> Judge(JobWindow& window) {
    Profile profile = Profile::kBalanced;
    if (rules_.fixed.has_value()) {
      profile = *rules_.fixed;
    } else {
      const bool holding = std::any_of(states_.begin(), states_.end(), [](const auto& one) {
        return one.second.status() == server::conditions::ConditionStatus::kTrue;
      });
      record_.Update(window, rules_.fast, holding);
      profile = record_.profile().profile;
    }
    fast_ = profile == Profile::kFast;
    std::vector<std::pair<std::string, Finding>> raised;
    const auto judge = [&](const Detector& detector) {
      ConditionState& state = states_[detector.name];
      const auto change = state.Update(detector.detect(window), window.now_ns,
                                       {detector.hold_for, detector.clear_after});
      if (change == ConditionState::Change::kRaised) {
        raised.emplace_back(detector.name, state.finding());
      }
    };
    for (const Detector& detector : rules_.With(profile)) {
      if (detector.judges != Judges::kRunning) judge(detector);
    }
    const server::conditions::RunningTasks running(&window);
    for (const Detector& detector : rules_.With(profile)) {
      if (detector.judges == Judges::kRunning) judge(detector);
    }
    return raised;
  }
  bool fast() const { return fast_; }

 private:
  const server::conditions::JobRules& rules_;
  server::conditions::PhaseRecord record_;
  std::map<std::string, ConditionState> states_;
  bool fast_ = false;
};

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string Shape(const FleetOptions& job) {
  return absl::StrFormat("%d tasks%s, %.2f s a step, checkpoints %.0f s%s, evaluations %.0f s",
                         job.tasks, job.synchronous ? "" : " not in step", job.compute,
                         job.checkpoint_seconds, job.first_task_saves ? " of the first task" : "",
                         job.eval_seconds);
}

void TryFault(const server::conditions::ConditionSettings& settings, const Kind& kind, bool records,
              size_t points, std::mt19937_64* random, ProfileScore* score) {
  FleetOptions job = DrawJob(records, random);
  job.synchronous = kind.synchronous;
  job.collectives = Contains(kind.conditions, "SlowCollective");
  Fault fault = {.kind = kind.fault};
  if (!kind.all_hosts) {
    fault.host = std::uniform_int_distribution<uint32_t>(0, job.tasks - 1)(*random);
  }
  // Events come from the first task; a dead one leaves them open.
  if (!kind.all_hosts && fault.host == 0) fault.host = 1;
  // A fault within a pause would begin when the pause does.
  const SyntheticFleet healthy(job, {}, kLatest);
  do {
    fault.at_seconds = Draw(kEarliest, kLatest, random);
  } while (healthy.PausesAt(fault.at_seconds, kind.all_hosts ? 0 : fault.host));
  fault.amount = Draw(kind.least, kind.most, random);
  if (kind.fault == FaultKind::kSlowInput || kind.fault == FaultKind::kSlowLink ||
      kind.fault == FaultKind::kSlowComm) {
    fault.amount *= job.compute;
  }
  const SyntheticFleet fleet(job, {fault}, fault.at_seconds + kFindWithin);
  SyntheticFollower follower(fleet, points);
  Judged judged(settings, job.job);
  KindScore& of_kind = score->kinds[kind.name];
  ++of_kind.trials;
  bool found = false;
  bool was_fast = false;
  const std::string what = absl::StrCat(kind.name, ", ", Shape(job));
  for (double t = kInterval; t <= fault.at_seconds + kFindWithin && !found;) {
    const bool after = t >= fault.at_seconds;
    if (!after) was_fast = judged.fast();
    for (const auto& [name, finding] : judged.Judge(follower.At(t))) {
      if (after && Contains(kind.conditions, name)) {
        if (std::exchange(found, true)) continue;
        of_kind.seconds.push_back(t - fault.at_seconds);
        if (kind.all_hosts) continue;
        ++of_kind.to_name;
        // A link has two ends.
        const size_t ends = kind.fault == FaultKind::kSlowLink ? 2 : 1;
        const auto is_it = [&](const server::conditions::Culprit& culprit) {
          return culprit.host == testing::SyntheticHost(fault.host);
        };
        const auto& culprits = finding.culprits;
        const bool right = std::any_of(culprits.begin(),
                                       culprits.begin() + std::min(ends, culprits.size()), is_it);
        of_kind.named += right ? 1 : 0;
        if (!right)
          score->remarks.push_back(absl::StrCat("culprit: ", what, ": ", finding.message));
      } else if (!after || !Contains(kind.may_follow, name)) {
        ++score->false_alarms;
        score->remarks.push_back(
            absl::StrCat("false at ", t, " s of ", what, ": ", name, ": ", finding.message));
      }
    }
    const double next =
        t + (after || t + kIntervalBefore > fault.at_seconds ? kInterval : kIntervalBefore);
    t = next;
  }
  score->hours += fault.at_seconds / 3600;
  of_kind.found += found ? 1 : 0;
  if (found) {
    score->remarks.push_back(
        absl::StrFormat("%.0f s%s: %s", of_kind.seconds.back(), was_fast ? ", fast" : "", what));
  } else {
    score->remarks.push_back(absl::StrCat("missed: ", what));
  }
}

void RunHealthy(const server::conditions::ConditionSettings& settings, bool records,
                const ProfileFleetOptions& options, std::mt19937_64* random, ProfileScore* score,
                size_t* fast, size_t* all) {
  const FleetOptions job = DrawHealthyJob(records, random);
  const double seconds = options.healthy_seconds;
  const SyntheticFleet fleet(job, {}, seconds);
  SyntheticFollower follower(fleet, options.points);
  Judged judged(settings, job.job);
  for (double t = kInterval; t <= seconds; t += kInterval) {
    for (const auto& [name, finding] : judged.Judge(follower.At(t))) {
      ++score->false_alarms;
      score->remarks.push_back(absl::StrCat("false at ", t, " s of a healthy job, ", Shape(job),
                                            ": ", name, ": ", finding.message));
    }
    *fast += judged.fast() ? 1 : 0;
    ++*all;
  }
  score->hours += seconds / 3600;
}

}  // namespace

ProfileScore ScoreProfiles(const server::conditions::ConditionSettings& settings, bool records,
                           const ProfileFleetOptions& options) {
  ProfileScore score;
  for (size_t k = 0; k < Kinds().size(); ++k) {
    std::mt19937_64 random(options.seed * 1000 + 2 * k + (records ? 1 : 0));
    for (size_t i = 0; i < options.trials; ++i) {
      TryFault(settings, Kinds()[k], records, options.points, &random, &score);
    }
  }
  size_t fast = 0;
  size_t all = 0;
  std::mt19937_64 random(options.seed * 1000 + 998 + (records ? 1 : 0));
  for (size_t i = 0; i < options.healthy_jobs; ++i) {
    RunHealthy(settings, records, options, &random, &score, &fast, &all);
  }
  if (all > 0) score.fast_share = static_cast<double>(fast) / static_cast<double>(all);
  return score;
}

}  // namespace tacho::conditions
