#include "server/conditions/detectors/trainer_silent.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/conditions/measures/heard.h"
#include "server/conditions/measures/phases.h"
#include "server/conditions/measures/step_times.h"

namespace tacho::server::conditions {
namespace {

constexpr double kRowsFactor = 5;
constexpr int64_t kAtOnceNs = 1'000'000'000;

struct Silent {
  const TaskWindow* task = nullptr;
  double seconds = 0;
};

// From when on silence counts, and what is allowed from then on is the time of a phase.
struct Excuse {
  int64_t since_ns = 0;
  bool in_phase = false;
};

// Events of one task, usually the first, stand for all: so a phase excuses whoever fell silent
// about when it began, or while one that it follows at once went on. A task that fell silent before
// is not excused by what the others go on to do.
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

}  // namespace

Finding DetectTrainerSilent(const JobWindow& window, const TrainerSilentSettings& settings) {
  if (window.ended) return NotPresent();
  const Hosts hosts(window);
  const double interval = ProgressInterval(window);
  const double limit =
      std::max(absl::ToDoubleSeconds(settings.silent_after), kRowsFactor * interval);
  const double phase_limit = std::max(limit, absl::ToDoubleSeconds(settings.phase_limit));
  const std::vector<PhaseInterval> phases = FindPhases(window);
  const auto limit_ns = static_cast<int64_t>(limit * 1e9);
  const auto slack_ns = static_cast<int64_t>(std::max(1.0, interval) * 1e9);
  std::vector<Silent> silent;
  size_t known = 0;
  for (const TaskWindow& task : window.tasks) {
    if (task.ended || !hosts.Heard(task.host)) continue;
    ++known;
    const int64_t last_ns = hosts.Corrected(task.host, task.last_time_ns);
    const double seconds = static_cast<double>(window.now_ns - last_ns) / 1e9;
    if (seconds <= limit) continue;
    const Excuse excuse =
        FindExcuse(phases, task.last_step.has_value(), last_ns, limit_ns, slack_ns);
    const double allowed = excuse.in_phase ? phase_limit : limit;
    if (static_cast<double>(window.now_ns - excuse.since_ns) / 1e9 <= allowed) continue;
    silent.push_back({.task = &task, .seconds = seconds});
  }
  if (known == 0) return NotJudged();
  if (silent.empty()) return NotPresent();
  std::stable_sort(silent.begin(), silent.end(),
                   [](const Silent& a, const Silent& b) { return a.seconds > b.seconds; });

  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  const Silent& first = silent.front();
  finding.reason = silent.size() == known ? "AllTrainers" : "SomeTrainers";
  finding.since_ns = first.task->last_time_ns;
  finding.step = first.task->last_step;
  finding.figures = {{"silent_tasks", static_cast<double>(silent.size()), "1"},
                     {"tasks", static_cast<double>(known), "1"},
                     {"silent_seconds", first.seconds, "s"},
                     {"limit", limit, "s"}};
  for (const Silent& one : silent) {
    if (finding.culprits.size() == kMaxCulprits) break;
    finding.culprits.push_back({.task = one.task->task,
                                .host = one.task->host,
                                .chip = "",
                                .metric = "",
                                .step = one.task->last_step,
                                .score = one.seconds});
  }
  finding.message =
      silent.size() == known
          ? absl::StrFormat("No trainer of %d sends rows for %.0f s", known, silent.back().seconds)
          : absl::StrFormat("%d of %d trainers send no rows", silent.size(), known);
  absl::StrAppend(&finding.message, ", though their agents are heard; the first is");
  if (first.task->task.has_value()) absl::StrAppend(&finding.message, " task ", *first.task->task);
  absl::StrAppendFormat(&finding.message, " on %s, for %.0f s", first.task->host, first.seconds);
  return finding;
}

}  // namespace tacho::server::conditions
