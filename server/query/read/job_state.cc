#include "server/query/read/job_state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "proto/base/status_macros.h"
#include "proto/base/task_end.h"

namespace tacho::server::query {
namespace {

constexpr char kStartedKind[] = "attempt_started";

// INT64_MIN if there are no rows, or the time would lie before that.
int64_t EarliestEnd(const storage::Extent& extent) {
  const int64_t slack = absl::ToInt64Nanoseconds(kRowsAfterEnd);
  return extent.last_time_ns < INT64_MIN + slack ? INT64_MIN : extent.last_time_ns - slack;
}

// Takes events, the newest first.
class EndFinder {
 public:
  explicit EndFinder(const storage::JobDetail& job) {
    for (const auto& info : job.attempts) attempts_.insert(info.attempt);
    for (const storage::TaskInfo& task : job.tasks) {
      tasks_[{task.task, task.host}] = &task;
      earliest_task_end_ns_ = std::min(earliest_task_end_ns_, EarliestEnd(task.extent));
    }
  }

  // Returns whether an older event may matter.
  bool Look(storage::Event event) {
    const int64_t time_ns = event.time_ns;
    if (event.kind == kStartedKind) NoteStart(event);
    if (IsEndKind(event.kind)) {
      AddToTask(event);
      const uint32_t attempt = event.source.attempt;
      if (attempts_.contains(attempt)) ends_.attempts.try_emplace(attempt, std::move(event));
    }
    return ends_.attempts.size() < attempts_.size() ||
           (time_ns >= earliest_task_end_ns_ && ends_.tasks.size() < tasks_.size());
  }

  Ends Take() { return std::move(ends_); }

 private:
  // A start in another attempt than that of its newest rows says nothing about the task's end.
  void NoteStart(const storage::Event& event) {
    Ends::TaskId id = {event.source.task, event.source.host};
    const auto task = tasks_.find(id);
    if (task == tasks_.end() || task->second->attempt != event.source.attempt) return;
    restarted_.insert(std::move(id));
  }

  void AddToTask(const storage::Event& event) {
    Ends::TaskId id = {event.source.task, event.source.host};
    const auto task = tasks_.find(id);
    if (task == tasks_.end() || task->second->attempt != event.source.attempt) return;
    if (event.time_ns < EarliestEnd(task->second->extent) || restarted_.contains(id)) return;
    ends_.tasks.try_emplace(std::move(id), event);
  }

  std::set<uint32_t> attempts_;
  std::map<Ends::TaskId, const storage::TaskInfo*> tasks_;
  int64_t earliest_task_end_ns_ = INT64_MAX;  // No older event is the end of a task.
  std::set<Ends::TaskId> restarted_;          // After what may come.
  Ends ends_;
};

// Whether each numbered task with rows in the attempt has ended; false if there is none.
absl::StatusOr<bool> AllTasksEnded(const storage::Store& store, const std::string& job,
                                   uint32_t attempt) {
  const std::optional<storage::JobDetail> detail = store.FindJob(job);
  if (!detail.has_value()) return false;
  std::map<uint32_t, int64_t> earliest_end_ns;  // Only attempts that may go on.
  for (const storage::TaskInfo& task : detail->tasks) {
    if (!task.task.has_value() || task.attempt != attempt) continue;
    int64_t& end_ns = earliest_end_ns.try_emplace(*task.task, INT64_MIN).first->second;
    end_ns = std::max(end_ns, EarliestEnd(task.extent));
  }
  // Tasks that have begun may still prepare their first row.
  if (earliest_end_ns.empty()) return false;
  int64_t since_ns = INT64_MAX;
  for (const auto& [task, end_ns] : earliest_end_ns) since_ns = std::min(since_ns, end_ns);
  bool restarted = false;
  const auto visit = [&](const storage::Event& event) {
    if (event.source.attempt != attempt || !event.source.task.has_value()) return true;
    const auto task = earliest_end_ns.find(*event.source.task);
    if (task == earliest_end_ns.end()) return true;
    restarted = restarted || event.kind == kStartedKind;
    if (IsEndKind(event.kind) && event.time_ns >= task->second) earliest_end_ns.erase(task);
    return !restarted && !earliest_end_ns.empty();
  };
  TACHO_RETURN_IF_ERROR(
      store.VisitEvents(job, since_ns, INT64_MAX, storage::Store::EventOrder::kNewestFirst, visit));
  return earliest_end_ns.empty();
}

}  // namespace

v1::JobState StateOf(const storage::Extent& extent, std::optional<int64_t> ended_ns,
                     absl::Time now) {
  if (ended_ns.has_value() && *ended_ns >= EarliestEnd(extent)) return v1::JOB_STATE_ENDED;
  const bool seen = extent.first_time_ns <= extent.last_time_ns;
  return seen && extent.last_time_ns >= absl::ToUnixNanos(now - kActiveFor) ? v1::JOB_STATE_RUNNING
                                                                            : v1::JOB_STATE_SILENT;
}

absl::StatusOr<v1::JobState> StateOfJob(const storage::Store& store, const storage::JobSummary& job,
                                        absl::Time now) {
  struct End {
    std::optional<int64_t> time_ns;  // The newest.
    bool of_all = false;             // One of them names no task.
    bool restarted = false;          // A task began after them.
    std::set<uint32_t> begun;        // Tasks, also those without rows yet.
  };
  std::map<uint32_t, End> ends;  // By attempt.
  const auto visit = [&](const storage::Event& event) {
    if (event.kind == kStartedKind) {
      End& end = ends[event.source.attempt];
      end.restarted = end.restarted || !end.time_ns.has_value();
      // Whether there are several matters, not how many.
      if (event.source.task.has_value() && end.begun.size() < 2) {
        end.begun.insert(*event.source.task);
      }
    } else if (IsEndKind(event.kind)) {
      End& end = ends[event.source.attempt];
      if (!end.time_ns.has_value()) end.time_ns = event.time_ns;
      end.of_all = end.of_all || !event.source.task.has_value();
    }
    return true;
  };
  TACHO_RETURN_IF_ERROR(store.VisitEvents(job.name, EarliestEnd(job.extent), INT64_MAX,
                                          storage::Store::EventOrder::kNewestFirst, visit));
  const v1::JobState without_end = StateOf(job.extent, std::nullopt, now);
  if (ends.empty()) return without_end;
  TACHO_ASSIGN_OR_RETURN(const auto outline, store.Outline(job.name, /*hosts=*/false));
  const auto found = ends.find(outline.attempt.value_or(ends.rbegin()->first));
  if (found == ends.end() || !found->second.time_ns.has_value()) return without_end;
  const End& end = found->second;
  // Tasks without an end may have gone without a word, with their machines.
  bool ended = !end.restarted && (end.of_all || (job.tasks <= 1 && end.begun.size() <= 1) ||
                                  without_end == v1::JOB_STATE_SILENT);
  // Costs more, so it is asked only where several tasks may have ended one by one.
  if (!ended && job.tasks > 1) {
    TACHO_ASSIGN_OR_RETURN(ended, AllTasksEnded(store, job.name, found->first));
  }
  return ended ? StateOf(job.extent, end.time_ns, now) : without_end;
}

absl::StatusOr<Ends> EndsOf(const storage::Store& store, const storage::JobDetail& job,
                            const QueryControl& control) {
  EndFinder finder(job);
  absl::Status stopped;
  absl::Status status =
      store.VisitEvents(job.summary.name, INT64_MIN, INT64_MAX,
                        storage::Store::EventOrder::kNewestFirst, [&](storage::Event event) {
                          stopped = control.Check();
                          return stopped.ok() && finder.Look(std::move(event));
                        });
  if (!stopped.ok()) return stopped;
  if (!status.ok()) return status;
  return finder.Take();
}

}  // namespace tacho::server::query
