// TrainerExited: the process of a task failed, or is gone without having closed its record.
//
// Definition. An event "exited" of a task of the newest attempt (proto/base/task_end.h), which no
// later row, start or end of the task contradicts. The agent sends it when it finds a ring whose
// writer is gone and left it open; a trainer sends it when it fails and can still say so. The
// condition lasts until a new attempt, or the same task, begins.
//
// Reasons, of the first culprit: Signal, ExitCode, Exception, or Unknown, because only the parent
// of a process surely learns how it ended. Critical if no task of the job is left, so that nothing
// trains any more, unless somebody asked the process to end (SIGINT, SIGTERM). Culprits: the tasks,
// the first to go first, because the others often follow from it; score: the seconds since then.
//
// Needs agents, or trainers that send directly and fail in good order. Limits: nothing
// reports a direct trainer that is killed; its host counts as silent (AgentSilent).
//
// Source: ours.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/conditions/detectors/detectors.h"

namespace tacho::server::conditions {
namespace {

constexpr int kInterrupted = 2;  // SIGINT
constexpr int kTerminated = 15;  // SIGTERM

std::string FieldOf(const TaskExit& exit, const char* name) {
  const auto found = exit.fields.find(name);
  return found == exit.fields.end() ? "" : found->second;
}

absl::string_view ReasonOf(const TaskExit& exit) {
  if (!FieldOf(exit, "exception").empty()) return "Exception";
  if (!FieldOf(exit, "signal").empty()) return "Signal";
  if (!FieldOf(exit, "exit_code").empty()) return "ExitCode";
  return "Unknown";
}

bool WasAskedToEnd(const TaskExit& exit) {
  int signal = 0;
  return absl::SimpleAtoi(FieldOf(exit, "signal"), &signal) &&
         (signal == kInterrupted || signal == kTerminated);
}

std::string MessageOf(const TaskExit& first, size_t exits) {
  std::string text = first.task.has_value() ? absl::StrCat("Task ", *first.task) : "The trainer";
  if (!first.host.empty()) absl::StrAppend(&text, " on ", first.host);
  if (const std::string exception = FieldOf(first, "exception"); !exception.empty()) {
    absl::StrAppend(&text, " failed with ", exception);
  } else if (const std::string signal = FieldOf(first, "signal"); !signal.empty()) {
    absl::StrAppend(&text, " was ended by signal ", signal);
  } else if (const std::string code = FieldOf(first, "exit_code"); !code.empty()) {
    absl::StrAppend(&text, " returned ", code);
  } else {
    absl::StrAppend(&text, " is gone; how it ended is not known");
  }
  if (exits > 1) absl::StrAppend(&text, "; ", exits - 1, " more exited after it");
  return text;
}

}  // namespace

Finding DetectTrainerExited(const JobWindow& window, const Progress::TrainerExited& /*settings*/) {
  if (window.exits.empty()) return window.tasks.empty() ? NotJudged() : NotPresent();
  const TaskExit& first = window.exits.front();
  const bool critical = window.ended && !WasAskedToEnd(first);
  Finding finding = Present(critical ? Severity::kCritical : Severity::kWarning, ReasonOf(first),
                            MessageOf(first, window.exits.size()));
  finding.since_ns = first.time_ns;
  const auto living = std::count_if(window.tasks.begin(), window.tasks.end(),
                                    [](const TaskWindow& task) { return task.lives(); });
  finding.figures = {{"exited_tasks", static_cast<double>(window.exits.size()), "1"},
                     {"living_tasks", static_cast<double>(living), "1"}};
  for (const TaskExit& exit : window.exits) {
    Culprit culprit;
    culprit.task = exit.task;
    culprit.host = exit.host;
    for (const TaskWindow& task : window.tasks) {
      if (exit.task.has_value() && task.task == exit.task) culprit.step = task.last_step;
    }
    culprit.score = Seconds(window.now_ns - exit.time_ns);
    finding.Blame(std::move(culprit));
    if (finding.culprits.size() == kMaxCulprits) break;
  }
  finding.step = finding.culprits.front().step;
  return finding;
}

}  // namespace tacho::server::conditions
