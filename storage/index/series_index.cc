// The jobs and their catalogues: loads one when it is used, and lets it go when it is idle. The
// lock is not held while the disk is read or written.
#include "storage/index/series_index.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"
#include "storage/index/catalog_queries.h"
#include "storage/index/index_records.h"

namespace tacho::storage {

SeriesIndex::SeriesIndex(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                         Options options)
    : db_(db),
      kept_(db, options.disk),
      column_family_(column_family),
      options_(std::move(options)),
      limits_(options_.limits) {}

void SeriesIndex::MarkUsed(Job* job) const {
  job->used_ns.store(absl::ToUnixNanos(options_.now()), std::memory_order_relaxed);
}

SeriesIndex::Job* SeriesIndex::FindById(JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second.get();
}

SeriesIndex::Job* SeriesIndex::AddJob(JobId id, absl::string_view name) {
  auto added = std::make_unique<Job>();
  added->id = id;
  added->name = std::string(name);
  Job* const job = added.get();
  jobs_by_name_[job->name] = job;
  jobs_[id] = std::move(added);
  return job;
}

void SeriesIndex::SetCatalog(Job* job, CatalogPtr catalog) {
  ++jobs_in_memory_;
  series_in_memory_ += catalog->series_count();
  layouts_in_memory_ += catalog->layouts().size();
  text_bytes_ += catalog->text_bytes();
  job->catalog = std::move(catalog);
  job->left.reset();
}

void SeriesIndex::CountOut(const JobCatalog& catalog) {
  --jobs_in_memory_;
  series_in_memory_ -= catalog.series_count();
  layouts_in_memory_ -= catalog.layouts().size();
  text_bytes_ -= catalog.text_bytes();
}

absl::StatusOr<SeriesIndex::CatalogPtr> SeriesIndex::Acquire(JobId id) {
  const absl::Status expired = absl::NotFoundError("the job has expired");
  {
    absl::ReaderMutexLock lock(&mutex_);
    Job* const job = FindById(id);
    if (job == nullptr) return expired;
    MarkUsed(job);
    if (job->catalog != nullptr) return job->catalog;
  }
  absl::MutexLock loading(&loading_);
  CatalogPtr catalog;
  {
    absl::MutexLock lock(&mutex_);
    Job* const job = FindById(id);
    if (job == nullptr) return expired;
    if (job->catalog != nullptr) return job->catalog;
    if (CatalogPtr left = job->left.lock(); left != nullptr) {
      SetCatalog(job, std::move(left));
      return job->catalog;
    }
    // Not make_shared: a weak pointer to it is to keep no more than a control block.
    catalog.reset(new JobCatalog(id, job->name));
  }
  WriteKept().IgnoreError();  // What the disk refuses was of a job that is in memory.
  TACHO_RETURN_IF_ERROR(LoadCatalog(db_, column_family_, catalog.get()));
  absl::MutexLock lock(&mutex_);
  Job* const job = FindById(id);
  if (job == nullptr) return expired;
  SetCatalog(job, catalog);
  return catalog;
}

absl::Status SeriesIndex::Use(JobId job) { return Acquire(job).status(); }

absl::StatusOr<JobId> SeriesIndex::FindOrAddJobLocked(absl::string_view name) {
  rocksdb::WriteBatch write;
  JobId id = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (const auto found = jobs_by_name_.find(name); found != jobs_by_name_.end()) {
      return found->second->id;
    }
    id = next_.job++;
    Job* const job = AddJob(id, name);
    SetCatalog(job, CatalogPtr(new JobCatalog(id, name)));
    MarkUsed(job);
    write.Put(column_family_, JobKey(id), job->name);
    write.Put(column_family_, NextIdsKey(), EncodeNextIds(next_));
  }
  if (const rocksdb::Status refused = kept_.Keep(std::move(write)); !refused.ok()) {
    return FromRocksDb(refused, "register a job");
  }
  return id;
}

absl::StatusOr<JobId> SeriesIndex::FindOrAddJob(absl::string_view job) {
  if (const auto id = FindJob(job)) {
    TACHO_RETURN_IF_ERROR(WriteKept());
    return *id;
  }
  absl::MutexLock lock(&registering_);
  return FindOrAddJobLocked(job);
}

std::optional<JobId> SeriesIndex::FindJob(absl::string_view job) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = jobs_by_name_.find(job);
  if (found == jobs_by_name_.end()) return std::nullopt;
  return found->second->id;
}

bool SeriesIndex::HasRoomForJob(absl::string_view job) const {
  const uint64_t most = limits()->totals().jobs;
  absl::ReaderMutexLock lock(&mutex_);
  return jobs_.size() < most || jobs_by_name_.contains(job);
}

absl::StatusOr<LayoutPtr> SeriesIndex::FindLayout(JobId job, LayoutId id) {
  TACHO_ASSIGN_OR_RETURN(auto catalog, Acquire(job));
  absl::ReaderMutexLock lock(&mutex_);
  const Layout* const layout = catalog->FindLayout(id);
  if (layout == nullptr) return absl::NotFoundError(absl::StrCat("the job has no layout ", id));
  return LayoutPtr(catalog, layout);
}

absl::StatusOr<uint64_t> SeriesIndex::CountColumns(JobId id, LayoutId layout_id) const {
  {
    absl::ReaderMutexLock lock(&mutex_);
    const Job* const job = FindById(id);
    if (job == nullptr) return absl::NotFoundError("the job has expired");
    if (job->catalog != nullptr) {
      const Layout* const layout = job->catalog->FindLayout(layout_id);
      if (layout != nullptr) return layout->series.size();
      return absl::NotFoundError(absl::StrCat("the job has no layout ", layout_id));
    }
  }
  return storage::CountColumns(db_, column_family_, id, layout_id);
}

absl::StatusOr<std::vector<SeriesPtr>> SeriesIndex::Find(const Selector& selector, size_t limit) {
  const auto id = FindJob(selector.job);
  if (!id) return std::vector<SeriesPtr>();
  const auto catalog = Acquire(*id);
  if (absl::IsNotFound(catalog.status())) return std::vector<SeriesPtr>();
  if (!catalog.ok()) return catalog.status();
  std::vector<const Series*> found;
  {
    absl::ReaderMutexLock lock(&mutex_);
    found = SelectSeries(**catalog, selector, limit);
  }
  if (found.size() > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", limit, " series match; name a metric or add a matcher"));
  }
  std::sort(found.begin(), found.end(), SeriesOrder);
  std::vector<SeriesPtr> out;
  out.reserve(found.size());
  for (const Series* series : found) out.emplace_back(*catalog, series);
  return out;
}

absl::StatusOr<std::vector<Metric>> SeriesIndex::Metrics(JobId job) {
  TACHO_ASSIGN_OR_RETURN(const auto catalog, Acquire(job));
  std::vector<Metric> out;
  {
    absl::ReaderMutexLock lock(&mutex_);
    for (const auto& entry : catalog->metrics()) out.push_back(entry.metric);
  }
  std::sort(out.begin(), out.end(),
            [](const Metric& a, const Metric& b) { return a.name < b.name; });
  return out;
}

absl::StatusOr<std::vector<std::pair<SeriesSource, uint64_t>>> SeriesIndex::SourceCounts(
    JobId job) {
  TACHO_ASSIGN_OR_RETURN(const auto catalog, Acquire(job));
  std::vector<std::pair<SeriesSource, uint64_t>> out;
  absl::ReaderMutexLock lock(&mutex_);
  for (const JobCatalog::SourceEntry& entry : catalog->sources()) {
    uint64_t series = 0;
    for (const auto& [first, end] : entry.series) series += end - first;
    out.emplace_back(entry.source, series);
  }
  return out;
}

absl::StatusOr<JobEntities> SeriesIndex::Entities(JobId job) {
  TACHO_ASSIGN_OR_RETURN(const auto catalog, Acquire(job));
  absl::ReaderMutexLock lock(&mutex_);
  return JobEntities{IncarnationsOf(*catalog), ChipsOf(*catalog)};
}

absl::StatusOr<std::vector<MetricUse>> SeriesIndex::MetricUses(JobId job) {
  TACHO_ASSIGN_OR_RETURN(const auto catalog, Acquire(job));
  absl::ReaderMutexLock lock(&mutex_);
  return MetricUsesOf(*catalog);
}

absl::StatusOr<uint64_t> SeriesIndex::CountMetrics(JobId id) const {
  {
    absl::ReaderMutexLock lock(&mutex_);
    const Job* const job = FindById(id);
    if (job == nullptr) return absl::NotFoundError("the job has expired");
    if (job->catalog != nullptr) return job->catalog->metrics().size();
  }
  return storage::CountMetrics(db_, column_family_, id);
}

std::vector<SeriesIndex::JobInfo> SeriesIndex::Jobs() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<JobInfo> out;
  out.reserve(jobs_.size());
  for (const auto& [id, job] : jobs_) out.push_back({id, job->name, job->series});
  return out;
}

uint64_t SeriesIndex::SeriesCount(JobId id) const {
  absl::ReaderMutexLock lock(&mutex_);
  const Job* const job = FindById(id);
  return job == nullptr ? 0 : job->series;
}

std::vector<JobId> SeriesIndex::UnusedSince(absl::Time time) const {
  const int64_t before_ns = absl::ToUnixNanos(time);
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<JobId> out;
  for (const auto& [id, job] : jobs_) {
    if (job->catalog != nullptr && job->used_ns < before_ns) out.push_back(id);
  }
  return out;
}

void SeriesIndex::Unload(const std::vector<JobId>& jobs, absl::Time unused_since) {
  // Anything that is not written yet could not be read again.
  if (!WriteKept().ok()) return;
  const int64_t before_ns = absl::ToUnixNanos(unused_since);
  std::vector<CatalogPtr> leaving;  // Let go after the lock.
  absl::MutexLock lock(&mutex_);
  for (const JobId id : jobs) {
    Job* const job = FindById(id);
    if (job == nullptr || job->catalog == nullptr || job->used_ns >= before_ns) continue;
    CountOut(*job->catalog);
    job->left = job->catalog;
    leaving.push_back(std::move(job->catalog));
  }
}

bool SeriesIndex::InMemory(JobId id) const {
  absl::ReaderMutexLock lock(&mutex_);
  const Job* const job = FindById(id);
  return job != nullptr && job->catalog != nullptr;
}

void SeriesIndex::RemoveJob(JobId id, rocksdb::WriteBatch* write) {
  std::unique_ptr<Job> removed;  // Let go after the lock.
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  removed = std::move(found->second);
  jobs_by_name_.erase(removed->name);
  jobs_.erase(found);
  series_ -= removed->series;
  if (removed->catalog != nullptr) CountOut(*removed->catalog);
  write->Delete(column_family_, JobKey(id));
  for (const char kind : {'M', 'S', 'L'}) {
    const std::string prefix = JobPrefix(kind, id);
    write->DeleteRange(column_family_, prefix, PrefixEnd(prefix));
  }
}

SeriesIndex::Counts SeriesIndex::counts() const {
  absl::ReaderMutexLock lock(&mutex_);
  return {.jobs = jobs_.size(),
          .series = series_,
          .jobs_in_memory = jobs_in_memory_,
          .series_in_memory = series_in_memory_,
          .layouts_in_memory = layouts_in_memory_,
          .text_bytes_in_memory = text_bytes_,
          .next_series_id = next_.series};
}

absl::Status SeriesIndex::Load() {
  absl::MutexLock lock(&mutex_);
  const std::unique_ptr<rocksdb::Iterator> it(
      db_->NewIterator(rocksdb::ReadOptions(), column_family_));
  const auto damaged = [&] {
    return absl::DataLossError(absl::StrCat("the record of the series index under ",
                                            absl::BytesToHexString(View(it->key())),
                                            " is damaged"));
  };
  for (it->Seek("N"); it->Valid() && it->key().starts_with("N"); it->Next()) {
    const auto next = DecodeNextIds(View(it->value()));
    if (View(it->key()) != NextIdsKey() || !next) return damaged();
    next_ = *next;
  }
  // Before the next Seek() forgets it.
  if (!it->status().ok()) return FromRocksDb(it->status(), "read the series index");
  for (it->Seek("J"); it->Valid() && it->key().starts_with("J"); it->Next()) {
    ByteReader key(View(it->key()).substr(1));
    const JobId id = key.Be32();
    const absl::string_view name = View(it->value());
    if (!key.AtEnd() || id == 0 || id >= next_.job || jobs_by_name_.contains(name)) {
      return damaged();
    }
    const auto series = CountSeries(db_, column_family_, id);
    if (!series.ok()) return series.status();
    AddJob(id, name)->series = *series;
    series_ += *series;
  }
  return absl::OkStatus();
}

}  // namespace tacho::storage
