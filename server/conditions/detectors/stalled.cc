// Stalled: no task of the job has passed another step for too long.
//
// Definition. Let A be the newest time at which any task with a live agent reported a new step, by
// the collector's clock. The job is stalled if
//   now - A > limit = max(f, factor * p99, blocked_factor * c)
// where p99 is the 0.99-quantile of the times between rows with a new step (step_times.h), and c is
// the longest time that a recorded checkpoint or evaluation blocked a step. f is `floor`; once
// steps cover `settled_after`, it is 3 times the longest pause of a day that no phase explains
// (task_pace.h), within settled_floor and floor.
//
// If the job waits for one host, whose chips are idle while all others are busy (lone_host.h), the
// limit is max(settled_floor, factor * p99): no pause that all tasks take part in looks like that.
//
// Phases. After an event that begins compiling, checkpointing, evaluating, restoring or
// initialising, with no step since, the limit is that of the phase: its own key. A phase that takes
// long for its kind is PhaseLong before that.
// Before the first step the limit is `startup`. Attempts and tasks that have ended do not stall.
// Hosts with a silent agent do not count; if they are most of the hosts, the condition is not
// judged.
//
// Suspects. In a collective all tasks wait for one, so the step alone does not show which. Each of
// these signs adds to a task's score; a higher score is more suspect:
//   8  the agent of its host fell silent when the job stopped: the host lost its power or network;
//   4  its last step is lower than that of most (it never finished a step that the others did);
//   2  its last row of any kind is older than those of most, by more than a step;
//   1  its chips behave unlike most hosts' chips: idle while those spin, or the other way round;
//   1  the cores of its host behave unlike most.
// A sign that holds for half of the tasks or more does not count. Nor does a lower step, if several
// hosts are one step behind and stopped with the rest.
//
// Reasons: StepStuck (rows still come, the step stays the same), NoRows, NoFirstStep; or
// Initializing, Compiling, Restoring, Checkpointing, Evaluating, Preempted: that phase has taken
// too long.
//
// Needs rows with steps. The signals chip_busy and host_cpu_busy, and events, make it better.
// Limits: a hang and a wait that no event announces look the same; if all chips and cores do the
// same, there is no suspect. Takes O(n log n) in tasks, events and values.
//
// Sources. Factor and phases: NVIDIA Resiliency Extension's calculated timeouts, 5 times the
// largest gap seen, 60 min for the first heartbeat. A chip that spins in a collective is busy, so a
// duty cycle is no sign of progress (Google's megascale hang playbook, MaxText). The score is ours.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/heard.h"
#include "server/conditions/measures/lone_host.h"
#include "server/conditions/measures/phases.h"
#include "server/conditions/measures/step_times.h"
#include "server/conditions/measures/suspects.h"

namespace tacho::server::conditions {
namespace {

// How long the job may stand still at the moment, and in which phase.
struct Limit {
  double seconds = 0;
  std::optional<Phase> phase;
  int64_t idle_since_ns = 0;  // From then on no step and no phase that ended explains the time.
};

double PhaseLimit(Phase phase, const Progress::Stalled& settings) {
  switch (phase) {
    case Phase::kInit:
    case Phase::kCompile:
      return Seconds(settings.compile());
    case Phase::kRestore:
    case Phase::kPreempted:
      return Seconds(settings.restore());
    case Phase::kCheckpoint:
      return Seconds(settings.checkpoint());
    case Phase::kEval:
      return Seconds(settings.eval());
  }
  return 0;
}

// The longest checkpoint or evaluation that a step waited for, in seconds.
double LongestBlocked(const JobWindow& window) {
  double longest = 0;
  for (const TaskWindow& task : window.tasks) {
    for (const Signal signal : {Signal::kCheckpointTime, Signal::kEvalTime}) {
      const Track* track = FindTrack(task.tracks, signal);
      if (track == nullptr) continue;
      for (const Point& point : track->points) {
        if (std::isfinite(point.value)) longest = std::max(longest, point.value);
      }
    }
  }
  return longest;
}

constexpr double kPauses = 3;

// The least time that the job must stand still.
double FloorOf(const JobWindow& window, const Progress::Stalled& settings) {
  const double floor = Seconds(settings.floor());
  int64_t first_ns = INT64_MAX;
  int64_t last_ns = 0;
  double longest = 0;
  for (const TaskWindow& task : window.tasks) {
    if (!task.last_step.has_value() || task.first_step_time_ns == 0) continue;
    first_ns = std::min(first_ns, task.first_step_time_ns);
    last_ns = std::max(last_ns, task.last_step_time_ns);
    for (const Pause& pause : task.pace.Pauses()) longest = std::max(longest, pause.seconds);
  }
  if (last_ns == 0 || last_ns - first_ns < settings.settled_after()) return floor;
  return std::min(floor, std::max(Seconds(settings.settled_floor()), kPauses * longest));
}

// Where it is known that the job waits for one host.
double LeastLimit(const Progress::Stalled& settings, double interval) {
  return std::max(Seconds(std::min(settings.floor(), settings.settled_floor())),
                  settings.factor() * interval);
}

// `usual` is the limit outside phases. A phase that began clearly before the newest step does not
// hold up the next one: such checkpoints are written beside the training.
Limit LimitNow(const JobWindow& window, const Progress::Stalled& settings, int64_t since_ns,
               double interval, double usual) {
  Limit limit{.seconds = usual, .phase = std::nullopt, .idle_since_ns = since_ns};
  const std::vector<PhaseInterval> phases = FindPhases(window);
  const int64_t earliest_ns = since_ns - static_cast<int64_t>(std::max(1.0, interval) * 1e9);
  for (const PhaseInterval& open : phases) {
    // A phase that has just ended leaves time for the step after it.
    if (!open.open() && open.end_ns > since_ns) {
      limit.seconds = std::max(limit.seconds, Seconds(open.end_ns - since_ns) + usual);
      limit.idle_since_ns = std::max(limit.idle_since_ns, open.end_ns);
    }
    if (!open.open() || open.start_ns < earliest_ns) continue;
    const double allowed = PhaseLimit(open.phase, settings);
    // The step itself follows the phase.
    const double seconds = Seconds(open.start_ns - since_ns) + std::max(usual, allowed);
    if (!limit.phase.has_value() || seconds > limit.seconds) {
      limit.seconds = seconds;
      limit.phase = open.phase;
    }
  }
  return limit;
}

// Whether the job is one that trains, before its first step shows it.
bool WillStep(const JobWindow& window) {
  return window.attributes.contains("planned_steps") || !FindPhases(window).empty();
}

std::string ReasonOf(const Limit& limit, bool stepped, bool rows_come) {
  if (limit.phase.has_value()) {
    std::string word(PhaseName(*limit.phase));
    TACHO_CHECK(!word.empty());
    word[0] = static_cast<char>(word[0] - 'a' + 'A');
    return word;
  }
  if (!stepped) return "NoFirstStep";
  return rows_come ? "StepStuck" : "NoRows";
}

std::string Percent(double share) { return absl::StrFormat("%.0f%%", 100 * share); }

std::string DescribeFirst(const Suspect& suspect) {
  std::string text = absl::StrCat("; look at ", suspect.task->host);
  if (suspect.task->task.has_value()) absl::StrAppend(&text, " (task ", *suspect.task->task, ")");
  if (suspect.agent_silent) absl::StrAppend(&text, ", whose agent fell silent with the job");
  if (suspect.behind) {
    absl::StrAppend(&text, ", which is at step ", suspect.task->last_step.value_or(-1));
  }
  if (suspect.stopped_first) absl::StrAppend(&text, ", which fell silent first");
  if (suspect.chips_differ) {
    absl::StrAppend(&text, ", whose chips are ", Percent(suspect.chips_busy),
                    " busy, unlike the others");
  }
  if (suspect.cpu_differs) {
    absl::StrAppend(&text, ", whose cores are ", Percent(suspect.cpu_busy),
                    " busy, unlike the others");
  }
  return text;
}

bool WithinOneStep(const std::vector<Suspect>& suspects, int64_t step) {
  return std::all_of(suspects.begin(), suspects.end(), [&](const Suspect& suspect) {
    return suspect.task->last_step.has_value() && *suspect.task->last_step >= step - 1;
  });
}

std::string MessageOf(const Limit& limit, std::optional<int64_t> step, double seconds,
                      const std::vector<Suspect>& suspects) {
  std::string text =
      step.has_value()
          ? absl::StrFormat("No task has passed step %d for %.0f s (limit %.0f s)", *step, seconds,
                            limit.seconds)
          : absl::StrFormat("No task has reported a first step for %.0f s (limit %.0f s)", seconds,
                            limit.seconds);
  if (limit.phase.has_value()) absl::StrAppend(&text, " while ", PhaseName(*limit.phase));
  if (!suspects.empty() && suspects.front().score() > 0) {
    absl::StrAppend(&text, DescribeFirst(suspects.front()));
  } else if (step.has_value() && suspects.size() > 1 && WithinOneStep(suspects, *step)) {
    absl::StrAppend(&text, "; all tasks stopped within one step of it");
  }
  return text;
}

void AddEvidence(const std::vector<Suspect>& suspects, Finding* finding) {
  double behind = 0;
  double silent = 0;
  double chips_idle = 0;
  double lowest = static_cast<double>(finding->step.value_or(0));
  for (const Suspect& suspect : suspects) {
    if (suspect.behind) ++behind;
    if (suspect.agent_silent) ++silent;
    if (suspect.chips_busy < 0.1) ++chips_idle;
    if (suspect.task->last_step.has_value()) {
      lowest = std::min(lowest, static_cast<double>(*suspect.task->last_step));
    }
    if (suspect.score() == 0) continue;
    finding->BlameTask(*suspect.task, suspect.score(), suspect.task->last_step);
  }
  finding->AddFigure("tasks", static_cast<double>(suspects.size()), "1");
  finding->AddFigure("tasks_behind", behind, "1");
  finding->AddFigure("lowest_step", lowest, "1");
  finding->AddFigure("tasks_with_silent_agents", silent, "1");
  finding->AddFigure("tasks_with_idle_chips", chips_idle, "1");
  if (suspects.empty()) return;
  const Suspect& first = suspects.front();
  if (std::isfinite(first.chips_busy)) {
    finding->AddFigure("first_chips_busy", first.chips_busy, "1");
  }
  if (std::isfinite(first.cpu_busy)) finding->AddFigure("first_cpu_busy", first.cpu_busy, "1");
}

}  // namespace

Finding DetectStalled(const JobWindow& window, const Progress::Stalled& settings) {
  if (window.ended) return NotPresent();
  const Hosts hosts(window);
  std::vector<const TaskWindow*> heard;
  size_t active = 0;
  std::optional<int64_t> step;
  int64_t advanced_ns = 0;
  int64_t row_ns = 0;
  for (const TaskWindow& task : window.tasks) {
    if (!task.lives()) continue;
    ++active;
    if (hosts.Unheard(task.host)) continue;
    heard.push_back(&task);
    row_ns = std::max(row_ns, hosts.Corrected(task.host, task.last_time_ns));
    if (!task.last_step.has_value()) continue;
    step = std::max(step.value_or(*task.last_step), *task.last_step);
    advanced_ns = std::max(advanced_ns, hosts.Corrected(task.host, task.last_step_time_ns));
  }
  if (window.tasks.empty() || (active > 0 && heard.size() * 2 < active)) return NotJudged();
  if (active == 0) return NotPresent();
  if (!step.has_value() && !WillStep(window)) return NotJudged();

  const double interval = ProgressInterval(window);
  double usual = std::max({FloorOf(window, settings), settings.factor() * interval,
                           settings.blocked_factor() * LongestBlocked(window)});
  if (!step.has_value()) {
    usual = Seconds(settings.startup());
    advanced_ns = window.attempt_started_ns;
    for (const TaskWindow* task : heard) {
      if (advanced_ns == 0) advanced_ns = hosts.Corrected(task->host, task->first_time_ns);
    }
  }
  Limit limit = LimitNow(window, settings, advanced_ns, interval, usual);
  const double seconds = Seconds(window.now_ns - advanced_ns);
  if (seconds <= limit.seconds) {
    if (!step.has_value()) return NotPresent();
    limit = LimitNow(window, settings, advanced_ns, interval,
                     std::min(usual, LeastLimit(settings, interval)));
    if (seconds <= limit.seconds || !HostWaitedFor(window, limit.idle_since_ns)) {
      return NotPresent();
    }
  }

  const bool rows_come = Seconds(window.now_ns - row_ns) < std::max(60.0, 2 * interval);
  const std::vector<Suspect> suspects =
      FindSuspects(window, heard, hosts, advanced_ns, std::min(interval, seconds / 10));
  Finding finding = Present(Severity::kCritical, ReasonOf(limit, step.has_value(), rows_come),
                            MessageOf(limit, step, seconds, suspects));
  finding.since_ns = advanced_ns;
  finding.step = step;
  finding.figures = {{"seconds_without_step", seconds, "s"},
                     {"limit", limit.seconds, "s"},
                     {"progress_interval_p99", interval, "s"}};
  AddEvidence(suspects, &finding);
  return finding;
}

}  // namespace tacho::server::conditions
