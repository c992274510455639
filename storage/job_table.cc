#include "storage/job_table.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/bytes.h"
#include "storage/keys.h"
#include "storage/rocksdb_status.h"

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

// extent · varint number of attributes · each as string name, string value
std::string EncodeAttempt(const Extent& extent,
                          const std::map<std::string, std::string>& attributes) {
  std::string record;
  PutExtent(extent, &record);
  PutVarint(attributes.size(), &record);
  for (const auto& [name, value] : attributes) {
    PutString(name, &record);
    PutString(value, &record);
  }
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

}  // namespace

JobTable::JobTable(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* state) : db_(db), state_(state) {}

void JobTable::Include(const Layout& layout, const RowsEntry& rows) {
  Extent extent;
  for (size_t row = 0; row < rows.rows; ++row) {
    extent.Include(rows.Time(row));
    if (rows.has_steps) extent.IncludeStep(rows.Step(row));
  }
  const Series& any = *layout.series.front();
  absl::MutexLock lock(&mutex_);
  Job& job = jobs_[any.job_id];
  job.attempts[layout.attempt].extent.Include(extent);
  Task& task = job.tasks[{any.source->task, any.source->host}];
  if (extent.last_time_ns >= task.extent.last_time_ns) task.attempt = layout.attempt;
  task.extent.Include(extent);
}

void JobTable::Merge(JobId job_id, const Attributes& attributes, rocksdb::WriteBatch* write) {
  absl::MutexLock lock(&mutex_);
  Attempt& attempt = jobs_[job_id].attempts[attributes.attempt];
  for (const auto& [key, value] : attributes.values) {
    if (value.empty()) {
      attempt.attributes.erase(key);
    } else {
      attempt.attributes[key] = value;
    }
  }
  write->Put(state_, AttemptKey(job_id, attributes.attempt),
             EncodeAttempt(attempt.extent, attempt.attributes));
}

void JobTable::StageExtents(const Layout& layout, rocksdb::WriteBatch* write) const {
  const Series& any = *layout.series.front();
  absl::MutexLock lock(&mutex_);
  const auto job = jobs_.find(any.job_id);
  if (job == jobs_.end()) return;
  if (const auto attempt = job->second.attempts.find(layout.attempt);
      attempt != job->second.attempts.end()) {
    write->Put(state_, AttemptKey(any.job_id, layout.attempt),
               EncodeAttempt(attempt->second.extent, attempt->second.attributes));
  }
  if (const auto task = job->second.tasks.find(TaskId{any.source->task, any.source->host});
      task != job->second.tasks.end()) {
    std::string record;
    PutExtent(task->second.extent, &record);
    PutVarint(task->second.attempt, &record);
    write->Put(state_, TaskKey(any.job_id, any.source->task, any.source->host), record);
  }
}

void JobTable::RemoveJob(JobId job, rocksdb::WriteBatch* write) {
  absl::MutexLock lock(&mutex_);
  jobs_.erase(job);
  for (const char kind : {'P', 'A', 'K'}) {
    const std::string prefix = JobPrefix(kind, job);
    write->DeleteRange(state_, prefix, PrefixEnd(prefix));
  }
}

JobSummary JobTable::SummariseJob(const Job& job) {
  JobSummary summary;
  summary.attempts = static_cast<uint32_t>(job.attempts.size());
  std::set<uint32_t> tasks;
  std::set<absl::string_view> hosts;
  for (const auto& [id, task] : job.tasks) {
    summary.extent.Include(task.extent);
    if (id.first) tasks.insert(*id.first);
    hosts.insert(id.second);
  }
  summary.tasks = static_cast<uint32_t>(tasks.size());
  summary.hosts = static_cast<uint32_t>(hosts.size());
  return summary;
}

JobSummary JobTable::Summarise(JobId job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? JobSummary() : SummariseJob(found->second);
}

JobDetail JobTable::Describe(JobId job) const {
  JobDetail detail;
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return detail;
  detail.summary = SummariseJob(found->second);
  for (const auto& [number, attempt] : found->second.attempts) {
    detail.attempts.push_back({number, attempt.extent, attempt.attributes});
  }
  for (const auto& [id, task] : found->second.tasks) {
    detail.tasks.push_back(
        {.task = id.first, .host = id.second, .attempt = task.attempt, .extent = task.extent});
  }
  return detail;
}

std::optional<int64_t> JobTable::LastTime(const Series& series) const {
  absl::MutexLock lock(&mutex_);
  const auto job = jobs_.find(series.job_id);
  if (job == jobs_.end()) return std::nullopt;
  const auto task = job->second.tasks.find(TaskId{series.source->task, series.source->host});
  if (task == job->second.tasks.end()) return std::nullopt;
  return task->second.extent.last_time_ns;
}

absl::Status JobTable::Load() {
  absl::MutexLock lock(&mutex_);
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), state_));
  for (const char kind : {'A', 'K'}) {
    const std::string prefix(1, kind);
    for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
      absl::Status status = LoadRecord(View(it->key()), View(it->value()));
      if (!status.ok()) return status;
    }
    // Before the next Seek() forgets it.
    if (!it->status().ok()) return FromRocksDb(it->status(), "read the jobs");
  }
  return absl::OkStatus();
}

absl::Status JobTable::LoadRecord(absl::string_view key, absl::string_view value) {
  ByteReader k(key);
  ByteReader v(value);
  const char kind = static_cast<char>(k.Byte());
  Job& job = jobs_[k.Be32()];
  if (kind == 'A') {
    Attempt& attempt = job.attempts[k.Be32()];
    attempt.extent = ReadExtent(&v);
    const uint64_t attributes = v.Varint();
    for (uint64_t i = 0; i < attributes && v.ok(); ++i) {
      const absl::string_view name = v.String();
      attempt.attributes[std::string(name)] = std::string(v.String());
    }
  } else {
    TaskId id;
    if (k.Byte() == 1) id.first = k.Be32();
    id.second = std::string(k.rest());
    Task& task = job.tasks[id];
    task.extent = ReadExtent(&v);
    task.attempt = static_cast<uint32_t>(v.Varint());
  }
  if (k.ok() && v.AtEnd()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the job record under ", absl::BytesToHexString(key), " is damaged"));
}

}  // namespace tacho::storage
