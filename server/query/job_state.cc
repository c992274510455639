#include "server/query/job_state.h"

#include <algorithm>
#include <utility>

namespace tacho::server {
namespace {

// INT64_MIN if there are no rows, or the time would lie before that.
int64_t EarliestEnd(const storage::Extent& extent) {
  const int64_t slack = absl::ToInt64Nanoseconds(kRowsAfterEnd);
  return extent.last_time_ns < INT64_MIN + slack ? INT64_MIN : extent.last_time_ns - slack;
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
  const auto outline = store.Outline(job.name, /*hosts=*/false);
  if (!outline.ok()) return outline.status();
  const auto found = ended_ns.find(outline->attempt.value_or(ended_ns.rbegin()->first));
  if (found == ended_ns.end()) return StateOf(job.extent, std::nullopt, now);
  return StateOf(job.extent, found->second, now);
}

absl::StatusOr<std::map<uint32_t, storage::Event>> EndsOf(
    const storage::Store& store, absl::string_view job,
    const std::vector<storage::AttemptInfo>& attempts, const QueryControl& control) {
  std::map<uint32_t, storage::Event> ends;
  absl::Status stopped;
  const auto known = [&](uint32_t attempt) {
    return std::any_of(attempts.begin(), attempts.end(),
                       [&](const auto& info) { return info.attempt == attempt; });
  };
  absl::Status status =
      store.VisitEvents(job, INT64_MIN, INT64_MAX, storage::Store::EventOrder::kNewestFirst,
                        [&](storage::Event event) {
                          stopped = control.Check();
                          const uint32_t attempt = event.source.attempt;
                          if (event.kind == kEndedKind && known(attempt))
                            ends.try_emplace(attempt, std::move(event));
                          return stopped.ok() && ends.size() < attempts.size();
                        });
  if (!stopped.ok()) return stopped;
  if (!status.ok()) return status;
  return ends;
}

}  // namespace tacho::server
