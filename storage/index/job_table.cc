// Extents grow with every commit and are written when rows are sealed; attributes are written by
// the commit that brings them. Questions about a job that is not in memory read the disk.
#include "storage/index/job_table.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

// zig-zag varint first and last time · byte 1 if there are steps, then zig-zag varint of the first
// and the last, else byte 0
void PutExtent(const Extent& extent, std::string* out) {
  PutVarint(ZigZag(extent.first_time_ns), out);
  PutVarint(ZigZag(extent.last_time_ns), out);
  out->push_back(extent.first_step ? 1 : 0);
  if (extent.first_step) {
    PutVarint(ZigZag(*extent.first_step), out);
    PutVarint(ZigZag(*extent.last_step), out);
  }
}

// varint number of attributes · each as string name, string value
//
// A record of their own: it is written by commits only, and that of the attempt when rows are
// sealed, so that neither can put back an older state of the other.
std::string EncodeAttributes(const std::map<std::string, std::string>& attributes) {
  std::string record;
  PutVarint(attributes.size(), &record);
  for (const auto& [name, value] : attributes) {
    PutString(name, &record);
    PutString(value, &record);
  }
  return record;
}

std::string EncodeExtent(const Extent& extent) {
  std::string record;
  PutExtent(extent, &record);
  return record;
}

Extent ReadExtent(ByteReader* in) {
  Extent extent;
  extent.first_time_ns = UnZigZag(in->Varint());
  extent.last_time_ns = UnZigZag(in->Varint());
  if (in->Byte() == 1) {
    extent.first_step = UnZigZag(in->Varint());
    extent.last_step = UnZigZag(in->Varint());
  }
  return extent;
}

absl::Status DamagedJob(absl::string_view key) {
  return absl::DataLossError(
      absl::StrCat("the job record under ", absl::BytesToHexString(key), " is damaged"));
}

}  // namespace

JobTable::JobTable(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* state) : db_(db), state_(state) {}

JobTable::Task* JobTable::FindOrAddTask(Job* job, const SeriesSource& source) {
  auto& tasks = job->detail->tasks;
  if (const auto found = tasks.find(source); found != tasks.end()) return &found->second;
  job->counted = false;
  return &tasks[TaskId(source.task, source.host)];
}

void JobTable::Count(Job* job) {
  if (job->counted || job->detail == nullptr) return;
  absl::flat_hash_set<uint32_t> tasks;
  absl::flat_hash_set<absl::string_view> hosts;
  for (const auto& [id, task] : job->detail->tasks) {
    if (id.first) tasks.insert(*id.first);
    hosts.insert(id.second);
  }
  job->tasks = static_cast<uint32_t>(tasks.size());
  job->hosts = static_cast<uint32_t>(hosts.size());
  job->attempts = static_cast<uint32_t>(job->detail->attempts.size());
  job->counted = true;
}

// extent · varint attempts · varint tasks · varint hosts
std::string JobTable::EncodeJob(const Job& job) {
  std::string record;
  PutExtent(job.extent, &record);
  PutVarint(job.attempts, &record);
  PutVarint(job.tasks, &record);
  PutVarint(job.hosts, &record);
  return record;
}

absl::Status JobTable::Load() {
  absl::MutexLock lock(&mutex_);
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), state_));
  for (it->Seek("J"); it->Valid() && it->key().starts_with("J"); it->Next()) {
    ByteReader key(View(it->key()).substr(1));
    ByteReader value(View(it->value()));
    Job& job = jobs_[key.Be32()];
    job.extent = ReadExtent(&value);
    job.attempts = static_cast<uint32_t>(value.Varint());
    job.tasks = static_cast<uint32_t>(value.Varint());
    job.hosts = static_cast<uint32_t>(value.Varint());
    if (!key.AtEnd() || !value.AtEnd()) return DamagedJob(View(it->key()));
  }
  return FromRocksDb(it->status(), "read the jobs");
}

absl::Status JobTable::LoadDetail(absl::string_view key, absl::string_view value, Job* job) {
  ByteReader k(key);
  ByteReader v(value);
  const char kind = static_cast<char>(k.Byte());
  k.Be32();
  if (kind == 'A') {
    job->detail->attempts[k.Be32()].extent = ReadExtent(&v);
    return k.AtEnd() && v.AtEnd() ? absl::OkStatus() : DamagedJob(key);
  }
  if (kind == 'B') {
    Attempt& attempt = job->detail->attempts[k.Be32()];
    const uint64_t attributes = v.Varint();
    for (uint64_t i = 0; i < attributes && v.ok(); ++i) {
      const absl::string_view name = v.String();
      attempt.attributes[std::string(name)] = std::string(v.String());
    }
    return k.AtEnd() && v.AtEnd() ? absl::OkStatus() : DamagedJob(key);
  }
  TaskId id;
  if (k.Byte() == 1) id.first = k.Be32();
  id.second = std::string(k.rest());
  Task task;
  task.extent = ReadExtent(&v);
  task.attempt = static_cast<uint32_t>(v.Varint());
  if (!k.ok() || !v.AtEnd()) return DamagedJob(key);
  job->detail->tasks[std::move(id)] = task;
  return absl::OkStatus();
}

absl::Status JobTable::ForEachRecord(
    char kind, JobId id,
    absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const {
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), state_));
  const std::string prefix = JobPrefix(kind, id);
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    TACHO_RETURN_IF_ERROR(visit(View(it->key()), View(it->value())));
  }
  return FromRocksDb(it->status(), "read a job");
}

absl::StatusOr<JobTable::Job*> JobTable::Acquire(JobId id) {
  Job& job = jobs_[id];
  if (job.detail != nullptr) return &job;
  job.detail = std::make_unique<Detail>();
  absl::Status status;
  for (const char kind : {'A', 'B', 'K'}) {
    if (!status.ok()) break;
    status = ForEachRecord(kind, id, [&](absl::string_view key, absl::string_view value) {
      return LoadDetail(key, value, &job);
    });
  }
  if (!status.ok()) {
    job.detail.reset();
    return status;
  }
  job.counted = false;
  return &job;
}

absl::Status JobTable::Use(JobId job) {
  absl::MutexLock lock(&mutex_);
  return Acquire(job).status();
}

void JobTable::UnloadUnless(const std::function<bool(JobId)>& keep) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, job] : jobs_) {
    if (job.detail == nullptr || keep(id)) continue;
    Count(&job);
    job.detail.reset();
  }
}

void JobTable::Include(const Layout& layout, const RowsEntry& rows) {
  Extent extent;
  for (size_t row = 0; row < rows.rows; ++row) {
    extent.Include(rows.Time(row));
    if (rows.has_steps) extent.IncludeStep(rows.Step(row));
  }
  const Series& any = *layout.series.front();
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(any.job_id);
  if (found == jobs_.end() || found->second.detail == nullptr) return;
  Job& job = found->second;
  job.extent.Include(extent);
  const auto [attempt, added] = job.detail->attempts.try_emplace(layout.attempt);
  if (added) job.counted = false;
  attempt->second.extent.Include(extent);
  Task* const task = FindOrAddTask(&job, *any.source);
  if (extent.last_time_ns >= task->extent.last_time_ns) task->attempt = layout.attempt;
  task->extent.Include(extent);
}

absl::Status JobTable::Merge(JobId id, const Attributes& attributes, rocksdb::WriteBatch* write) {
  absl::MutexLock lock(&mutex_);
  TACHO_ASSIGN_OR_RETURN(const auto acquired, Acquire(id));
  Job& job = *acquired;
  const Attempt& attempt = job.detail->attempts[attributes.attempt];
  const auto [staged, added] = merging_.try_emplace({id, attributes.attempt});
  auto& merged = staged->second;
  if (added) merged = attempt.attributes;
  for (const auto& [key, value] : attributes.values) {
    if (value.empty()) {
      merged.erase(key);
    } else {
      merged[key] = value;
    }
  }
  job.counted = false;
  Count(&job);
  write->Put(state_, AttributesKey(id, attributes.attempt), EncodeAttributes(merged));
  write->Put(state_, JobSummaryKey(id), EncodeJob(job));
  return absl::OkStatus();
}

void JobTable::KeepMerged() {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, attributes] : merging_) {
    ++told_[id.first];
    const auto job = jobs_.find(id.first);
    // A job that has left memory meanwhile is read again with them.
    if (job == jobs_.end() || job->second.detail == nullptr) continue;
    job->second.detail->attempts[id.second].attributes = std::move(attributes);
  }
  merging_.clear();
}

void JobTable::ForgetMerged() {
  absl::MutexLock lock(&mutex_);
  merging_.clear();
}

void JobTable::NoteEvent(JobId job) {
  absl::MutexLock lock(&mutex_);
  ++told_[job];
}

void JobTable::StageExtents(const std::vector<const Layout*>& layouts, rocksdb::WriteBatch* write) {
  absl::flat_hash_set<JobId> jobs;
  absl::flat_hash_set<std::pair<JobId, uint32_t>> attempts;
  absl::flat_hash_set<const SeriesSource*> sources;
  absl::MutexLock lock(&mutex_);
  for (const Layout* layout : layouts) {
    const Series& any = *layout->series.front();
    const auto found = jobs_.find(any.job_id);
    if (found == jobs_.end() || found->second.detail == nullptr) continue;
    Job& job = found->second;
    if (jobs.insert(any.job_id).second) {
      Count(&job);
      write->Put(state_, JobSummaryKey(any.job_id), EncodeJob(job));
    }
    if (attempts.emplace(any.job_id, layout->attempt).second) {
      const Attempt& attempt = job.detail->attempts[layout->attempt];
      write->Put(state_, AttemptKey(any.job_id, layout->attempt), EncodeExtent(attempt.extent));
    }
    if (sources.insert(any.source).second) {
      const Task& task = *FindOrAddTask(&job, *any.source);
      std::string record;
      PutExtent(task.extent, &record);
      PutVarint(task.attempt, &record);
      write->Put(state_, TaskKey(any.job_id, any.source->task, any.source->host), record);
    }
  }
}

void JobTable::RemoveJob(JobId job, rocksdb::WriteBatch* write) {
  absl::MutexLock lock(&mutex_);
  jobs_.erase(job);
  told_.erase(job);
  write->Delete(state_, JobSummaryKey(job));
  for (const char kind : {'P', 'A', 'B', 'K'}) {
    const std::string prefix = JobPrefix(kind, job);
    write->DeleteRange(state_, prefix, PrefixEnd(prefix));
  }
}

std::vector<int64_t> JobTable::LastTimes() const {
  absl::MutexLock lock(&mutex_);
  std::vector<int64_t> times;
  times.reserve(jobs_.size());
  for (const auto& [id, job] : jobs_) {
    if (job.extent.first_time_ns <= job.extent.last_time_ns) {
      times.push_back(job.extent.last_time_ns);
    }
  }
  return times;
}

JobSummary JobTable::Summarise(JobId id) const {
  JobSummary summary;
  absl::MutexLock lock(&mutex_);
  const auto told = told_.find(id);
  if (told != told_.end()) summary.told = told->second;
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
  for (const auto& [number, attempt] : detail.attempts) {
    for (const auto& [name, value] : attempt.attributes) outline.merged_attributes[name] = value;
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

absl::StatusOr<std::optional<uint32_t>> JobTable::ReadLastAttempt(JobId id) const {
  const std::string prefix = JobPrefix('A', id);
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
  TACHO_ASSIGN_OR_RETURN(const auto last, ReadLastAttempt(id));
  if (last.has_value()) job.detail->attempts[*last];
  const auto load = [&](absl::string_view key, absl::string_view value) {
    return LoadDetail(key, value, &job);
  };
  TACHO_RETURN_IF_ERROR(ForEachRecord('B', id, load));
  if (hosts) TACHO_RETURN_IF_ERROR(ForEachRecord('K', id, load));
  return OutlineOf(*job.detail, hosts);
}

}  // namespace tacho::storage
