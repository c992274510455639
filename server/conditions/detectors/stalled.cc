#include "server/conditions/detectors/stalled.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/conditions/measures/heard.h"
#include "server/conditions/measures/phases.h"
#include "server/conditions/measures/step_times.h"
#include "server/conditions/measures/suspects.h"

namespace tacho::server::conditions {
namespace {

// What is allowed at the moment, and why.
struct Limit {
  double seconds = 0;
  std::optional<Phase> phase;
};

double SecondsBetween(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e9;
}

double PhaseLimit(Phase phase, const StalledSettings& settings) {
  switch (phase) {
    case Phase::kInit:
    case Phase::kCompile:
      return absl::ToDoubleSeconds(settings.compile);
    case Phase::kRestore:
    case Phase::kPreempted:
      return absl::ToDoubleSeconds(settings.restore);
    case Phase::kCheckpoint:
      return absl::ToDoubleSeconds(settings.checkpoint);
    case Phase::kEval:
      return absl::ToDoubleSeconds(settings.eval);
  }
  return 0;
}

// Of checkpoints and evaluations that steps had to wait for.
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

// `usual` is the limit if nothing special goes on. A phase that began clearly before the newest
// step does not hold it up: such checkpoints are written beside the training.
Limit LimitNow(const JobWindow& window, const StalledSettings& settings, int64_t since_ns,
               double interval, double usual) {
  Limit limit{.seconds = usual, .phase = std::nullopt};
  const std::vector<PhaseInterval> phases = FindPhases(window);
  const int64_t earliest_ns = since_ns - static_cast<int64_t>(std::max(1.0, interval) * 1e9);
  for (const PhaseInterval& open : phases) {
    // One that has just ended leaves time for the step after it.
    if (!open.open() && open.end_ns > since_ns) {
      limit.seconds = std::max(limit.seconds, SecondsBetween(since_ns, open.end_ns) + usual);
    }
    if (!open.open() || open.start_ns < earliest_ns) continue;
    double longest = 0;
    const bool repeats = open.phase == Phase::kCheckpoint || open.phase == Phase::kEval;
    for (const PhaseInterval& past : phases) {
      if (!repeats || past.phase != open.phase || past.open()) continue;
      longest = std::max(longest, SecondsBetween(past.start_ns, past.end_ns));
    }
    double allowed = PhaseLimit(open.phase, settings);
    if (longest > 0) allowed = std::min(allowed, settings.factor * longest);
    // The step itself comes after it.
    const double seconds = SecondsBetween(since_ns, open.start_ns) + std::max(usual, allowed);
    if (!limit.phase.has_value() || seconds > limit.seconds) {
      limit = {.seconds = seconds, .phase = open.phase};
    }
  }
  return limit;
}

// That it trains at all, before a step has shown it.
bool WillStep(const JobWindow& window) {
  return window.attributes.contains("planned_steps") || !FindPhases(window).empty();
}

std::string ReasonOf(const Limit& limit, bool stepped, bool rows_come) {
  if (limit.phase.has_value()) {
    std::string word(PhaseName(*limit.phase));
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
  if (suspect.behind) {
    absl::StrAppend(&text, ", which is at step ", suspect.task->last_step.value_or(-1));
  }
  if (suspect.stopped_first) absl::StrAppend(&text, ", which fell silent first");
  if (suspect.chips_differ) {
    absl::StrAppend(&text, ", whose chips are ", Percent(suspect.chips_busy),
                    " busy unlike the others'");
  }
  if (suspect.cpu_differs) {
    absl::StrAppend(&text, ", whose cores are ", Percent(suspect.cpu_busy),
                    " busy unlike the others'");
  }
  return text;
}

void AddEvidence(const std::vector<Suspect>& suspects, Finding* finding) {
  double behind = 0;
  double chips_idle = 0;
  double lowest = static_cast<double>(finding->step.value_or(0));
  for (const Suspect& suspect : suspects) {
    if (suspect.behind) ++behind;
    if (suspect.chips_busy < 0.1) ++chips_idle;
    if (suspect.task->last_step.has_value()) {
      lowest = std::min(lowest, static_cast<double>(*suspect.task->last_step));
    }
    if (suspect.score() == 0 || finding->culprits.size() == kMaxCulprits) continue;
    finding->culprits.push_back({.task = suspect.task->task,
                                 .host = suspect.task->host,
                                 .chip = "",
                                 .metric = "",
                                 .step = suspect.task->last_step,
                                 .score = static_cast<double>(suspect.score())});
  }
  finding->figures.push_back({"tasks", static_cast<double>(suspects.size()), "1"});
  finding->figures.push_back({"tasks_behind", behind, "1"});
  finding->figures.push_back({"lowest_step", lowest, "1"});
  finding->figures.push_back({"tasks_with_idle_chips", chips_idle, "1"});
  if (suspects.empty()) return;
  const Suspect& first = suspects.front();
  if (std::isfinite(first.chips_busy)) {
    finding->figures.push_back({"first_chips_busy", first.chips_busy, "1"});
  }
  if (std::isfinite(first.cpu_busy)) {
    finding->figures.push_back({"first_cpu_busy", first.cpu_busy, "1"});
  }
}

}  // namespace

Finding DetectStalled(const JobWindow& window, const StalledSettings& settings) {
  if (window.ended) return NotPresent();
  const Hosts hosts(window);
  std::vector<const TaskWindow*> heard;
  size_t active = 0;
  std::optional<int64_t> step;
  int64_t advanced_ns = 0;
  int64_t row_ns = 0;
  for (const TaskWindow& task : window.tasks) {
    if (task.ended) continue;
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
  double usual = std::max({absl::ToDoubleSeconds(settings.floor), settings.factor * interval,
                           2 * LongestBlocked(window)});
  if (!step.has_value()) {
    usual = absl::ToDoubleSeconds(settings.startup);
    advanced_ns = window.attempt_started_ns;
    for (const TaskWindow* task : heard) {
      if (advanced_ns == 0) advanced_ns = hosts.Corrected(task->host, task->first_time_ns);
    }
  }
  const Limit limit = LimitNow(window, settings, advanced_ns, interval, usual);
  const double seconds = SecondsBetween(advanced_ns, window.now_ns);
  if (seconds <= limit.seconds) return NotPresent();

  Finding finding{.judged = true, .present = true, .severity = Severity::kCritical};
  const bool rows_come = SecondsBetween(row_ns, window.now_ns) < std::max(60.0, 2 * interval);
  finding.reason = ReasonOf(limit, step.has_value(), rows_come);
  finding.since_ns = advanced_ns;
  finding.step = step;
  finding.figures = {{"seconds_without_step", seconds, "s"},
                     {"limit", limit.seconds, "s"},
                     {"progress_interval_p99", interval, "s"}};
  const std::vector<Suspect> suspects =
      FindSuspects(window, heard, hosts, advanced_ns, std::min(interval, seconds / 10));
  AddEvidence(suspects, &finding);
  finding.message =
      step.has_value()
          ? absl::StrFormat("No task has passed step %d for %.0f s (limit %.0f s)", *step, seconds,
                            limit.seconds)
          : absl::StrFormat("No task has told of a first step for %.0f s (limit %.0f s)", seconds,
                            limit.seconds);
  if (limit.phase.has_value()) {
    absl::StrAppend(&finding.message, " while ", PhaseName(*limit.phase));
  }
  if (!suspects.empty() && suspects.front().score() > 0) {
    absl::StrAppend(&finding.message, DescribeFirst(suspects.front()));
  }
  return finding;
}

}  // namespace tacho::server::conditions
