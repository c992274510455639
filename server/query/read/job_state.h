// The state of jobs and attempts (v1::JobState), from their rows and the events that end tasks
// (proto/base/task_end.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/query/read/query_control.h"
#include "storage/model/event.h"
#include "storage/model/job.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// Rows of the last five minutes mean that a job runs.
inline constexpr absl::Duration kActiveFor = absl::Minutes(5);
// Rows that come at most this long after an end do not contradict it: tasks do not end at
// the same moment, and agents go on for a while.
inline constexpr absl::Duration kRowsAfterEnd = absl::Minutes(1);

// `ended_ns`: time of the newest end; nullopt if there is none.
v1::JobState StateOf(const storage::Extent& extent, std::optional<int64_t> ended_ns,
                     absl::Time now);

// The state of a job as a whole. Ends count if they are of the highest-numbered attempt: one of no
// task, those of all its tasks, or one of a task where all are silent. Reads the events after the
// last rows of the job, and if some of its tasks ended there, those after the last rows of each
// task; holds none of them in memory.
absl::StatusOr<v1::JobState> StateOfJob(const storage::Store& store, const storage::JobSummary& job,
                                        absl::Time now);

// The newest end of each attempt that has one, and of each task that has ended.
struct Ends {
  using TaskId = std::pair<std::optional<uint32_t>, std::string>;  // Task and host.

  std::map<uint32_t, storage::Event> attempts;
  std::map<TaskId, storage::Event> tasks;  // Ends of tasks in the attempt of their newest row.
};

// Reads the job's events, newest first, until every attempt has its end and no older event can be
// the end of a task.
absl::StatusOr<Ends> EndsOf(const storage::Store& store, const storage::JobDetail& job,
                            const QueryControl& control);

}  // namespace tacho::server::query
