// AgentSilent: the agent of a host that runs tasks of the job does not report.
//
// Definition. With age = now - the time of the agent's last message, by the collector's clock:
//   not connected and age > disconnected_after, or connected and age > silent_after
// for a host with a task that has not ended. Agents send figures of their hosts every few seconds,
// whatever trainers do.
//
// Reasons: Disconnected, NotHeard (for the first culprit); AllAgents if all hosts are silent and
// there are more than two: then look at the network or the collector rather than at hosts. After
// a recorded preemption the agents of its tasks may be silent, and after most tasks have ended all
// agents may be: their hosts were taken away.
// Culprits: the hosts, the longest silent first; score: seconds of silence.
//
// Needs hosts with a known agent. Limits: a dead host, a dead agent and a cut network look the
// same; but if the trainer died too, synchronous training stops, and the job is Stalled. A trainer
// that sends directly (client/direct) counts as the agent of its host if there is no other.
//
// Source: ours. A heartbeat of 5 s as in Google's ml-goodput-measurement; NVIDIA Resiliency
// Extension counts a heartbeat that stops for 30 s and more.
//
//
// TrainerSilent: the agent of a host reports, but a task on it sends no rows.
//
// Definition. A task is silent if the agent of its host is connected and reports (heard.h), the
// task has not ended, and its newest row of any kind is older than
//   max(silent_after, 5 * the time between rows with a new step)                (step_times.h)
// unless a phase (compiling, checkpointing, evaluating, restoring, initialising) began before it
// was silent for that long: during the phase the task may be silent for phase_limit. If the phase
// began within two rows' time, the limit above counts from its end, because a step follows it; the
// same holds for a phase that directly follows another. For tasks without a first step every phase
// counts, and they may be silent for phase_limit without one.
//
// Reasons: AllTrainers if no task of the job sends (it died, or hangs: Stalled shows since which
// step), else SomeTrainers. Culprits: the tasks, the longest silent first; score: seconds of
// silence. If all fell silent within two rows' time, no task was the first, and none is a culprit.
// Hosts whose agents fell silent at the same time come before all others: they lost their power.
//
// Needs agents. Limits: a trainer that is stuck in a step writes no rows either, unless it records
// from another thread, so a dead one and a waiting one look the same. A hang therefore makes this
// condition true after Stalled; deploy/alertmanager inhibits this one then.
//
// Source: ours. A failed pull (`up`) cannot distinguish "agent gone", "agent there, trainer silent"
// and "trainer there, step stuck".
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/heard.h"
#include "server/conditions/measures/phases.h"
#include "server/conditions/measures/step_times.h"

namespace tacho::server::conditions {
namespace {

struct SilentAgent {
  const HostWindow* host = nullptr;
  std::optional<uint32_t> task;  // The first running one on the host.
  double seconds = 0;
};

std::string AgentMessage(const SilentAgent& first, size_t silent, size_t known, bool all) {
  if (all) {
    return absl::StrFormat("None of %d agents has reported for up to %.0f s", known, first.seconds);
  }
  std::string text =
      absl::StrFormat("The agent on %s has not reported for %.0f s; it is %s", first.host->host,
                      first.seconds, first.host->agent->connected ? "connected" : "not connected");
  if (silent > 1) absl::StrAppend(&text, "; ", silent - 1, " more are silent");
  return text;
}

// Agents that fall silent this long before a preemption is recorded, or later, were preempted.
constexpr int64_t kPreemptedWithinNs = 60'000'000'000;

// The hosts of tasks that were preempted and have not begun again; all of them if it was the job.
struct Preempted {
  bool all = false;
  int64_t all_since_ns = 0;
  std::map<std::string, int64_t> hosts;  // With the time.

  explicit Preempted(const JobWindow& window) {
    for (const PhaseInterval& phase : FindPhases(window)) {
      if (phase.phase != Phase::kPreempted || !phase.open()) continue;
      if (!phase.task.has_value()) {
        all = true;
        all_since_ns = phase.start_ns;
      }
      for (const TaskWindow& task : window.tasks) {
        if (phase.task.has_value() && task.task == phase.task) hosts[task.host] = phase.start_ns;
      }
    }
  }

  bool Excuses(const HostWindow& host) const {
    const int64_t heard_ns = host.agent->last_heard_ns + kPreemptedWithinNs;
    if (all && heard_ns >= all_since_ns) return true;
    const auto found = hosts.find(host.host);
    return found != hosts.end() && heard_ns >= found->second;
  }
  // One task often records what befell all.
  bool ExcusesAll(const std::vector<SilentAgent>& silent) const {
    if (hosts.empty()) return false;
    const auto since_ns =
        std::min_element(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->second;
    return std::all_of(silent.begin(), silent.end(), [&](const SilentAgent& one) {
      return one.host->agent->last_heard_ns + kPreemptedWithinNs >= since_ns;
    });
  }
};

bool MostTasksEnded(const JobWindow& window) {
  const auto ended = static_cast<size_t>(std::count_if(
      window.tasks.begin(), window.tasks.end(), [](const TaskWindow& task) { return task.ended; }));
  return ended * 2 >= window.tasks.size();
}

constexpr double kSilentIntervals = 5;
constexpr int64_t kAtOnceNs = 1'000'000'000;

struct SilentTrainer {
  const TaskWindow* task = nullptr;
  double seconds = 0;
};

// When silence starts to count, and whether the limit from then on is that of a phase.
struct Excuse {
  int64_t since_ns = 0;
  bool in_phase = false;
};

// Events of one task, usually the first, stand for all tasks. So a phase excuses a task that fell
// silent about when it began, or during a phase that it directly follows. It does not excuse a task
// that was silent before.
Excuse FindExcuse(const std::vector<PhaseInterval>& phases, bool stepped, int64_t last_ns,
                  int64_t limit_ns, int64_t slack_ns) {
  Excuse excuse = {.since_ns = last_ns, .in_phase = !stepped};
  const auto first = std::partition_point(
      phases.begin(), phases.end(),
      [&](const PhaseInterval& phase) { return phase.start_ns < last_ns - slack_ns; });
  for (auto phase = first; phase != phases.end(); ++phase) {
    const bool follows = excuse.since_ns > last_ns &&
                         phase->start_ns - excuse.since_ns <= std::min(slack_ns, kAtOnceNs);
    const int64_t reach_ns = phase->open() ? limit_ns : 2 * slack_ns;
    if (stepped && !follows && phase->start_ns > last_ns + reach_ns) continue;
    excuse.since_ns = std::max(excuse.since_ns, phase->open() ? phase->start_ns : phase->end_ns);
    excuse.in_phase = excuse.in_phase || phase->open();
  }
  return excuse;
}

// Whether all trainers fell silent at once. `silent` are the longest silent first.
bool SilentTogether(const std::vector<SilentTrainer>& silent, size_t known, double interval) {
  return silent.size() == known && known > 1 &&
         silent.front().seconds - silent.back().seconds <= 2 * std::max(1.0, interval);
}

// `silent` are the longest silent first.
std::string TrainerMessage(const std::vector<SilentTrainer>& silent, size_t known, bool together) {
  const TaskWindow& first = *silent.front().task;
  std::string text = silent.size() == known
                         ? absl::StrFormat("None of %d trainers has sent rows for %.0f s", known,
                                           silent.back().seconds)
                         : absl::StrFormat("%d of %d trainers send no rows", silent.size(), known);
  absl::StrAppend(&text, ", though their agents report");
  if (together) {
    absl::StrAppend(&text, "; they fell silent together");
    if (first.last_step.has_value()) absl::StrAppend(&text, ", at step ", *first.last_step);
    return text;
  }
  absl::StrAppend(&text, "; the first is");
  if (first.task.has_value()) absl::StrAppend(&text, " task ", *first.task);
  absl::StrAppendFormat(&text, " on %s, silent for %.0f s", first.host, silent.front().seconds);
  return text;
}

// Tasks of hosts whose agents fell silent then; none if they are as many as those that are heard.
std::vector<const TaskWindow*> LostWith(const JobWindow& window, const Hosts& hosts,
                                        int64_t time_ns, double interval) {
  std::vector<const TaskWindow*> lost;
  size_t living = 0;
  for (const TaskWindow& task : window.tasks) {
    if (!task.lives()) continue;
    ++living;
    if (hosts.FellSilentAt(task.host, time_ns, 2 * interval)) lost.push_back(&task);
  }
  if (lost.size() * 2 >= living) lost.clear();
  return lost;
}

}  // namespace

Finding DetectAgentSilent(const JobWindow& window, const Progress::AgentSilent& settings) {
  if (window.ended) return NotPresent();
  std::map<std::string, std::optional<uint32_t>> running;  // Hosts, and the first task of each.
  for (const TaskWindow& task : window.tasks) {
    if (task.lives()) running.emplace(task.host, task.task);
  }
  const Preempted preempted(window);
  std::vector<SilentAgent> silent;
  size_t known = 0;
  size_t excused = 0;
  for (const HostWindow& host : window.hosts) {
    const auto found = running.find(host.host);
    if (!host.agent.has_value() || found == running.end()) continue;
    ++known;
    const int64_t age_ns = window.now_ns - host.agent->last_heard_ns;
    const int64_t limit_ns =
        host.agent->connected ? settings.silent_after() : settings.disconnected_after();
    if (age_ns <= limit_ns) continue;
    if (preempted.Excuses(host)) {
      ++excused;
      continue;
    }
    silent.push_back({.host = &host, .task = found->second, .seconds = Seconds(age_ns)});
  }
  if (known == 0) return window.tasks.empty() || !running.empty() ? NotJudged() : NotPresent();
  if (silent.empty()) return NotPresent();
  std::stable_sort(silent.begin(), silent.end(), [](const SilentAgent& a, const SilentAgent& b) {
    return a.seconds > b.seconds;
  });

  if (silent.size() + excused == known &&
      (preempted.ExcusesAll(silent) || MostTasksEnded(window))) {
    return NotPresent();
  }
  const SilentAgent& first = silent.front();
  const bool all = silent.size() == known && known > 2;
  const char* reason = first.host->agent->connected ? "NotHeard" : "Disconnected";
  Finding finding = Present(Severity::kWarning, all ? "AllAgents" : reason,
                            AgentMessage(first, silent.size(), known, all));
  finding.since_ns = first.host->agent->last_heard_ns;
  finding.figures = {{"silent_agents", static_cast<double>(silent.size()), "1"},
                     {"agents", static_cast<double>(known), "1"},
                     {"silent_seconds", first.seconds, "s"}};
  for (const SilentAgent& one : silent) finding.BlameHost(one.host->host, one.seconds, one.task);
  return finding;
}

Finding DetectTrainerSilent(const JobWindow& window, const Progress::TrainerSilent& settings) {
  if (window.ended) return NotPresent();
  const Hosts hosts(window);
  const double interval = ProgressInterval(window);
  const double limit = std::max(Seconds(settings.silent_after()), kSilentIntervals * interval);
  const double phase_limit = std::max(limit, Seconds(settings.phase_limit()));
  const std::vector<PhaseInterval> phases = FindPhases(window);
  const auto limit_ns = static_cast<int64_t>(limit * 1e9);
  const auto slack_ns = static_cast<int64_t>(std::max(1.0, interval) * 1e9);
  std::vector<SilentTrainer> silent;
  size_t known = 0;
  for (const TaskWindow& task : window.tasks) {
    if (!task.lives() || !hosts.Heard(task.host)) continue;
    ++known;
    const int64_t last_ns = hosts.Corrected(task.host, task.last_time_ns);
    const double seconds = Seconds(window.now_ns - last_ns);
    if (seconds <= limit) continue;
    const Excuse excuse =
        FindExcuse(phases, task.last_step.has_value(), last_ns, limit_ns, slack_ns);
    const double allowed = excuse.in_phase ? phase_limit : limit;
    if (Seconds(window.now_ns - excuse.since_ns) <= allowed) continue;
    silent.push_back({.task = &task, .seconds = seconds});
  }
  if (known == 0) return NotJudged();
  if (silent.empty()) return NotPresent();
  std::stable_sort(
      silent.begin(), silent.end(),
      [](const SilentTrainer& a, const SilentTrainer& b) { return a.seconds > b.seconds; });

  const SilentTrainer& first = silent.front();
  const bool together = SilentTogether(silent, known, interval);
  const std::vector<const TaskWindow*> lost = LostWith(
      window, hosts, hosts.Corrected(first.task->host, first.task->last_time_ns), interval);
  std::string message = TrainerMessage(silent, known, together);
  if (!lost.empty()) {
    absl::StrAppend(&message, "; the agent of ", lost.front()->host,
                    " fell silent at the same time: look there first");
  }
  Finding finding =
      Present(Severity::kWarning, silent.size() == known ? "AllTrainers" : "SomeTrainers",
              std::move(message));
  finding.since_ns = first.task->last_time_ns;
  finding.step = first.task->last_step;
  finding.figures = {{"silent_tasks", static_cast<double>(silent.size()), "1"},
                     {"tasks", static_cast<double>(known), "1"},
                     {"silent_seconds", first.seconds, "s"},
                     {"limit", limit, "s"}};
  for (const TaskWindow* task : lost) {
    finding.BlameTask(*task, first.seconds, task->last_step);
  }
  if (together) return finding;
  for (const SilentTrainer& one : silent) {
    finding.BlameTask(*one.task, one.seconds, one.task->last_step);
  }
  return finding;
}

}  // namespace tacho::server::conditions
