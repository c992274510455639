// PhaseLong: a recorded phase, such as a checkpoint, takes far longer than it usually does.
//
// Definition. A phase that an event began and none has ended is long if it has taken more than
//   max(floor, factor * the longest earlier phase of its kind in this attempt)
// and no task has passed a step since it began, but for the step that was being written then: a
// checkpoint that is written beside the training holds nobody up. A kind of which none has ended
// in this attempt has no usual length.
//
// Reasons: Initializing, Compiling, Restoring, Checkpointing, Evaluating, Preempted. Culprits: the
// tasks that are still in it, where at least as many tasks have ended theirs since it began; score:
// seconds. A warning: the job may go on any moment. Stalled, which is critical, takes over at the
// limit that the configuration sets for the phase.
//
// Needs the events of phases. Limits: it is not known how far a phase has got; one whose end was
// lost looks long until the next step.
//
// Source: ours.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/heard.h"
#include "server/conditions/measures/phases.h"
#include "server/conditions/measures/step_times.h"

namespace tacho::server::conditions {
namespace {

struct LongPhase {
  const PhaseInterval* phase = nullptr;
  double seconds = 0;
  double usual = 0;    // The median of the earlier ones.
  double longest = 0;  // Of the earlier ones.
  size_t earlier = 0;
};

LongPhase Compare(const std::vector<PhaseInterval>& phases, const PhaseInterval& open,
                  int64_t now_ns) {
  LongPhase found = {.phase = &open, .seconds = Seconds(now_ns - open.start_ns)};
  std::vector<double> earlier;
  for (const PhaseInterval& past : phases) {
    if (past.phase != open.phase || past.open() || past.start_ns >= open.start_ns) continue;
    earlier.push_back(Seconds(past.end_ns - past.start_ns));
  }
  found.earlier = earlier.size();
  if (earlier.empty()) return found;
  found.longest = *std::max_element(earlier.begin(), earlier.end());
  found.usual = Median(std::move(earlier));
  return found;
}

// The newest time at which a task passed a step.
int64_t LastStepNs(const JobWindow& window) {
  const Hosts hosts(window);
  int64_t last_ns = 0;
  for (const TaskWindow& task : window.tasks) {
    if (!task.last_step.has_value()) continue;
    last_ns = std::max(last_ns, hosts.Corrected(task.host, task.last_step_time_ns));
  }
  return last_ns;
}

// Blames tasks that are behind others in the phase.
void BlameThoseInside(const JobWindow& window, const std::vector<PhaseInterval>& phases,
                      const LongPhase& first, Finding* finding) {
  std::vector<const PhaseInterval*> inside;
  size_t done = 0;
  const auto began_ns = first.phase->start_ns - static_cast<int64_t>(1e9 * first.longest);
  for (const PhaseInterval& phase : phases) {
    if (phase.phase != first.phase->phase || phase.start_ns < began_ns) continue;
    if (phase.open()) {
      inside.push_back(&phase);
    } else if (phase.end_ns > first.phase->start_ns) {
      ++done;
    }
  }
  if (done < inside.size()) return;
  for (const PhaseInterval* phase : inside) {
    for (const TaskWindow& task : window.tasks) {
      if (task.task != phase->task || !phase->task.has_value()) continue;
      finding->BlameTask(task, Seconds(window.now_ns - phase->start_ns), task.last_step);
    }
  }
}

std::string ReasonOf(Phase phase) {
  std::string word(PhaseName(phase));
  TACHO_CHECK(!word.empty());
  word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

}  // namespace

Finding DetectPhaseLong(const JobWindow& window, const Progress::PhaseLong& settings) {
  if (window.ended) return NotPresent();
  const std::vector<PhaseInterval> phases = FindPhases(window);
  if (phases.empty()) return NotJudged();
  const double slack = std::max(1.0, ProgressInterval(window));
  const int64_t last_step_ns = LastStepNs(window);
  LongPhase worst;
  bool judged = false;
  for (const PhaseInterval& open : phases) {
    if (!open.open()) {
      judged = true;
      continue;
    }
    const LongPhase found = Compare(phases, open, window.now_ns);
    if (found.earlier == 0) continue;
    judged = true;
    if (Seconds(last_step_ns - open.start_ns) > slack) continue;
    const double limit = std::max(Seconds(settings.floor()), settings.factor() * found.longest);
    if (found.seconds > limit && found.seconds > worst.seconds) worst = found;
  }
  if (!judged) return NotJudged();
  if (worst.phase == nullptr) return NotPresent();

  std::string reason = ReasonOf(worst.phase->phase);
  Finding finding = Present(
      Severity::kWarning, reason,
      absl::StrFormat("%s has taken %.0f s so far; it usually takes %.3g s, and took %.3g s "
                      "at most in %d earlier ones",
                      reason, worst.seconds, worst.usual, worst.longest, worst.earlier));
  finding.since_ns = worst.phase->start_ns;
  finding.figures = {{"seconds", worst.seconds, "s"},
                     {"usual", worst.usual, "s"},
                     {"longest", worst.longest, "s"},
                     {"earlier", static_cast<double>(worst.earlier), "1"},
                     {"threshold_factor", settings.factor(), "1"}};
  BlameThoseInside(window, phases, worst, &finding);
  return finding;
}

}  // namespace tacho::server::conditions
