#include "server/query/read/job_state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "proto/base/status_macros.h"

namespace tacho::server::query {
namespace {

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
    if (event.kind == kEndedKind) {
      AddToTask(event);
      const uint32_t attempt = event.source.attempt;
      if (attempts_.contains(attempt)) ends_.attempts.try_emplace(attempt, std::move(event));
    }
    return ends_.attempts.size() < attempts_.size() ||
           (time_ns >= earliest_task_end_ns_ && ends_.tasks.size() < tasks_.size());
  }

  Ends Take() { return std::move(ends_); }

 private:
  void AddToTask(const storage::Event& event) {
    Ends::TaskId id = {event.source.task, event.source.host};
    const auto task = tasks_.find(id);
    if (task == tasks_.end() || task->second->attempt != event.source.attempt) return;
    if (event.time_ns < EarliestEnd(task->second->extent)) return;
    ends_.tasks.try_emplace(std::move(id), event);
  }

  std::set<uint32_t> attempts_;
  std::map<Ends::TaskId, const storage::TaskInfo*> tasks_;
  int64_t earliest_task_end_ns_ = INT64_MAX;  // No older event is the end of a task.
  Ends ends_;
};

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
  std::map<uint32_t, int64_t> ended_ns;
  absl::Status status =
      store.VisitEvents(job.name, EarliestEnd(job.extent), INT64_MAX,
                        storage::Store::EventOrder::kNewestFirst, [&](storage::Event event) {
                          if (event.kind == kEndedKind) {
                            ended_ns.try_emplace(event.source.attempt, event.time_ns);
                          }
                          return true;
                        });
  if (!status.ok()) return status;
  if (ended_ns.empty()) return StateOf(job.extent, std::nullopt, now);
  TACHO_ASSIGN_OR_RETURN(const auto outline, store.Outline(job.name, /*hosts=*/false));
  const auto found = ended_ns.find(outline.attempt.value_or(ended_ns.rbegin()->first));
  if (found == ended_ns.end()) return StateOf(job.extent, std::nullopt, now);
  return StateOf(job.extent, found->second, now);
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
