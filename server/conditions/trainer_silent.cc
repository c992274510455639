#include "server/conditions/trainer_silent.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/conditions/heard.h"
#include "server/conditions/phases.h"
#include "server/conditions/step_times.h"

namespace tacho::server {
namespace {

constexpr double kRowsFactor = 5;

struct Silent {
  const TaskWindow* task = nullptr;
  double seconds = 0;
};

// When the phases that have not ended began, of whatever task: events of one, usually the first,
// stand for all. Ascending.
std::vector<int64_t> OpenPhases(const JobWindow& window) {
  std::vector<int64_t> starts;
  for (const PhaseInterval& phase : FindPhases(window)) {
    if (phase.open()) starts.push_back(phase.start_ns);
  }
  return starts;
}

// Whether one began between the two.
bool BeganBetween(const std::vector<int64_t>& starts, int64_t from_ns, int64_t to_ns) {
  const auto first = std::lower_bound(starts.begin(), starts.end(), from_ns);
  return first != starts.end() && *first <= to_ns;
}

}  // namespace

Finding DetectTrainerSilent(const JobWindow& window, const TrainerSilentSettings& settings) {
  if (window.ended) return NotPresent();
  const Hosts hosts(window);
  const double interval = ProgressInterval(window);
  const double limit =
      std::max(absl::ToDoubleSeconds(settings.silent_after), kRowsFactor * interval);
  const std::vector<int64_t> phases = OpenPhases(window);
  const auto limit_ns = static_cast<int64_t>(limit * 1e9);
  const auto slack_ns = static_cast<int64_t>(std::max(1.0, interval) * 1e9);
  std::vector<Silent> silent;
  size_t known = 0;
  for (const TaskWindow& task : window.tasks) {
    if (task.ended || !hosts.Heard(task.host)) continue;
    ++known;
    const int64_t last_ns = hosts.Corrected(task.host, task.last_time_ns);
    const double seconds = static_cast<double>(window.now_ns - last_ns) / 1e9;
    const bool in_phase =
        !task.last_step.has_value() || BeganBetween(phases, last_ns - slack_ns, last_ns + limit_ns);
    const double allowed =
        in_phase ? std::max(limit, absl::ToDoubleSeconds(settings.phase_limit)) : limit;
    if (seconds > allowed) silent.push_back({.task = &task, .seconds = seconds});
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

}  // namespace tacho::server
