#include "server/goodput/attempt_facts.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/base/task_end.h"
#include "server/goodput/job_goodput.h"
#include "server/phases/phases.h"
#include "server/query/read/job_state.h"

namespace tacho::server::goodput {
namespace {

bool EndedWell(const storage::Event& event) {
  if (event.kind == kExitedKind) return false;
  if (const auto code = event.fields.find("exit_code"); code != event.fields.end()) {
    return code->second == "0";
  }
  const auto status = event.fields.find("status");
  return status == event.fields.end() || status->second == "succeeded";
}

struct Attempt {
  Attempt(uint32_t number, const storage::Extent& extent) {
    facts.attempt = number;
    facts.first_ns = extent.first_time_ns;
    facts.last_ns = extent.last_time_ns;
  }

  AttemptFacts facts;
  phases::PhasePairs pairs;
  std::optional<std::pair<int64_t, bool>> end;  // The newest end of a task: its time, whether well.
  std::set<uint32_t> ended_tasks;
  bool all_ended = false;  // An end of no task came.
  bool restarted = false;  // A task began after the newest end.
};

constexpr char kStartKind[] = "attempt_started";

// Events of other kinds mention an attempt without being its own, as the collector's verdicts do.
bool IsSignOfLife(absl::string_view kind) {
  return IsEndKind(kind) || kind == kStartKind || phases::IsPhaseEvent(kind);
}

void AddEvent(const storage::Event& event, bool of_reference, size_t* phase_events,
              Attempt* attempt) {
  attempt->facts.first_ns = std::min(attempt->facts.first_ns, event.time_ns);
  if (IsEndKind(event.kind)) {
    attempt->end = {event.time_ns, EndedWell(event)};
    attempt->restarted = false;
    if (event.source.task.has_value()) {
      attempt->ended_tasks.insert(*event.source.task);
    } else {
      attempt->all_ended = true;
    }
    return;
  }
  attempt->facts.last_ns = std::max(attempt->facts.last_ns, event.time_ns);
  if (event.kind == kStartKind) {
    attempt->restarted = true;
    if (event.source.task.has_value()) attempt->ended_tasks.erase(*event.source.task);
  }
  // The time from "preempted" on is no part of the attempt.
  if (!of_reference || event.kind == "preempted" || !phases::IsPhaseEvent(event.kind)) return;
  if (*phase_events >= kMaxPhaseEvents) return;
  ++*phase_events;
  // Events of no task and events of the reference task pair with each other.
  attempt->pairs.Add(event.kind, event.time_ns, std::nullopt);
}

bool AllTasksEnded(const storage::JobDetail& job, const Attempt& attempt) {
  return attempt.all_ended ||
         std::all_of(job.tasks.begin(), job.tasks.end(), [&](const storage::TaskInfo& task) {
           return !task.task.has_value() || task.attempt != attempt.facts.attempt ||
                  attempt.ended_tasks.contains(*task.task);
         });
}

bool Lives(const storage::JobDetail& job, const Attempt& attempt, const AgentReports& reports) {
  if (reports == nullptr || attempt.all_ended) return false;
  return std::any_of(job.tasks.begin(), job.tasks.end(), [&](const storage::TaskInfo& task) {
    return task.task.has_value() && task.attempt == attempt.facts.attempt &&
           !attempt.ended_tasks.contains(*task.task) && !task.host.empty() && reports(task.host);
  });
}

// Whether it ended, and when it was alive last. While it is not silent, a task without an end may
// go on.
void SetEnd(const storage::JobDetail& job, int64_t silent_before_ns, Attempt* attempt) {
  AttemptFacts& facts = attempt->facts;
  const bool silent = facts.last_ns < silent_before_ns && !facts.lives;
  const bool over = !attempt->restarted && (silent || AllTasksEnded(job, *attempt));
  if (attempt->end.has_value() && over) {
    const auto [ended_ns, well] = *attempt->end;
    const int64_t slack = absl::ToInt64Nanoseconds(query::kRowsAfterEnd);
    facts.ended = facts.last_ns <= ended_ns || facts.last_ns - ended_ns <= slack;
    facts.ended_well = facts.ended && well;
    facts.last_ns = facts.ended ? ended_ns : std::max(facts.last_ns, ended_ns);
  }
  facts.first_ns = std::min(facts.first_ns, facts.last_ns);
}

}  // namespace

absl::StatusOr<std::vector<AttemptFacts>> FactsOf(const storage::Store& store,
                                                  const storage::JobDetail& job,
                                                  std::optional<uint32_t> reference_task,
                                                  absl::Time now, const AgentReports& reports,
                                                  const query::QueryControl& control) {
  std::map<uint32_t, Attempt> attempts;
  size_t left_out = job.attempts.size() - std::min(job.attempts.size(), kMaxGoodputAttempts);
  for (const storage::AttemptInfo& info : job.attempts) {
    if (left_out > 0) {
      --left_out;
      continue;
    }
    attempts.try_emplace(info.attempt, info.attempt, info.extent);
  }
  size_t phase_events = 0;
  absl::Status stopped;
  const auto visit = [&](const storage::Event& event) {
    stopped = control.Check();
    auto found = attempts.find(event.source.attempt);
    if (!IsSignOfLife(event.kind)) return stopped.ok();
    if (found == attempts.end() && attempts.size() < kMaxGoodputAttempts) {
      found =
          attempts.try_emplace(event.source.attempt, event.source.attempt, storage::Extent()).first;
    }
    if (found == attempts.end()) return stopped.ok();
    const bool of_reference =
        !event.source.task.has_value() || *event.source.task == reference_task.value_or(0);
    AddEvent(event, of_reference, &phase_events, &found->second);
    return stopped.ok();
  };
  absl::Status status = store.VisitEvents(job.summary.name, INT64_MIN, INT64_MAX,
                                          storage::Store::EventOrder::kOldestFirst, visit);
  if (!stopped.ok()) return stopped;
  if (!status.ok()) return status;
  const int64_t silent_before_ns = absl::ToUnixNanos(now - query::kActiveFor);
  std::vector<AttemptFacts> facts;
  if (!attempts.empty()) {
    Attempt& newest = attempts.rbegin()->second;
    newest.facts.lives = Lives(job, newest, reports);
  }
  for (auto& [number, attempt] : attempts) {
    SetEnd(job, silent_before_ns, &attempt);
    if (attempt.facts.first_ns > attempt.facts.last_ns) continue;  // No sign of life at all.
    attempt.facts.phases = attempt.pairs.Take();
    facts.push_back(std::move(attempt.facts));
  }
  return facts;
}

}  // namespace tacho::server::goodput
