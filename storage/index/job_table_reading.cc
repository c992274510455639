#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"
#include "storage/index/job_table.h"

namespace tacho::storage {

JobSummary JobTable::Summarise(JobId id) const {
  JobSummary summary;
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return summary;
  Job& job = found->second;
  Count(&job);
  summary.extent = job.extent;
  summary.attempts = job.attempts;
  summary.tasks = job.tasks;
  summary.hosts = job.hosts;
  return summary;
}

absl::StatusOr<JobDetail> JobTable::Describe(JobId id) {
  JobDetail detail;
  detail.summary = Summarise(id);
  absl::MutexLock lock(&mutex_);
  if (!jobs_.contains(id)) return detail;
  TACHO_ASSIGN_OR_RETURN(const auto acquired, Acquire(id));
  const Detail& known = *acquired->detail;
  detail.attempts = AttemptsOf(known);
  for (const auto& [task_id, task] : known.tasks) {
    detail.tasks.push_back({.task = task_id.first,
                            .host = task_id.second,
                            .attempt = task.attempt,
                            .extent = task.extent});
  }
  std::sort(detail.tasks.begin(), detail.tasks.end(), [](const TaskInfo& a, const TaskInfo& b) {
    return std::tie(a.task, a.host) < std::tie(b.task, b.host);
  });
  return detail;
}

absl::StatusOr<std::optional<int64_t>> JobTable::LastTime(const Series& series) {
  absl::MutexLock lock(&mutex_);
  if (!jobs_.contains(series.job_id)) return std::optional<int64_t>();
  TACHO_ASSIGN_OR_RETURN(const auto job, Acquire(series.job_id));
  const auto& tasks = job->detail->tasks;
  const auto task = tasks.find(*series.source);
  if (task == tasks.end()) return std::optional<int64_t>();
  return std::optional<int64_t>(task->second.extent.last_time_ns);
}

std::vector<AttemptInfo> JobTable::AttemptsOf(const Detail& detail) {
  std::vector<AttemptInfo> attempts;
  for (const auto& [number, attempt] : detail.attempts) {
    attempts.push_back({number, attempt.extent, attempt.attributes});
  }
  return attempts;
}

absl::StatusOr<std::vector<AttemptInfo>> JobTable::Attempts(JobId id) {
  absl::MutexLock lock(&mutex_);
  if (!jobs_.contains(id)) return std::vector<AttemptInfo>();
  TACHO_ASSIGN_OR_RETURN(const auto job, Acquire(id));
  return AttemptsOf(*job->detail);
}

JobOutline JobTable::OutlineOf(const Detail& detail, bool hosts) {
  JobOutline outline;
  if (!detail.attempts.empty()) {
    const auto& [number, attempt] = *detail.attempts.rbegin();
    outline.attempt = number;
    outline.attributes = attempt.attributes;
  }
  if (!hosts) return outline;
  std::set<absl::string_view> names;
  for (const auto& [id, task] : detail.tasks) names.insert(id.second);
  for (const absl::string_view name : names) outline.hosts.emplace_back(name);
  return outline;
}

absl::StatusOr<JobOutline> JobTable::Outline(JobId id, bool hosts) const {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return JobOutline();
    if (found->second.detail != nullptr) return OutlineOf(*found->second.detail, hosts);
  }
  return ReadOutline(id, hosts);
}

absl::StatusOr<std::optional<uint32_t>> JobTable::ReadLastAttempt(char kind, JobId id) const {
  const std::string prefix = JobPrefix(kind, id);
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), state_));
  it->SeekForPrev(PrefixEnd(prefix));
  if (!it->Valid() || !it->key().starts_with(prefix)) {
    TACHO_RETURN_IF_ERROR(FromRocksDb(it->status(), "read a job"));
    return std::optional<uint32_t>();
  }
  return std::optional<uint32_t>(ByteReader(View(it->key()).substr(prefix.size())).Be32());
}

absl::StatusOr<JobOutline> JobTable::ReadOutline(JobId id, bool hosts) const {
  Job job;
  job.detail = std::make_unique<Detail>();
  for (const char kind : {'A', 'B'}) {
    TACHO_ASSIGN_OR_RETURN(const auto last, ReadLastAttempt(kind, id));
    if (last.has_value()) job.detail->attempts[*last];
  }
  if (!job.detail->attempts.empty()) {
    const std::string key = AttributesKey(id, job.detail->attempts.rbegin()->first);
    std::string value;
    const rocksdb::Status got = db_->Get(rocksdb::ReadOptions(), state_, key, &value);
    absl::Status status;
    if (got.ok()) {
      status = LoadDetail(key, value, &job);
    } else if (!got.IsNotFound()) {
      status = FromRocksDb(got, "read a job");
    }
    if (!status.ok()) return status;
  }
  if (hosts) {
    absl::Status status =
        ForEachRecord('K', id, [&](absl::string_view key, absl::string_view value) {
          return LoadDetail(key, value, &job);
        });
    if (!status.ok()) return status;
  }
  return OutlineOf(*job.detail, hosts);
}

}  // namespace tacho::storage
