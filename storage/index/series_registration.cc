// SeriesIndex::Register(). No lock that readers wait for is held for more than kPiece columns, and
// none that other registrations wait for for more than kSlice: one who defines a million series
// must not keep his neighbours waiting. Each slice has records of its own.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"
#include "storage/index/index_records.h"
#include "storage/index/series_index.h"

namespace tacho::storage {
namespace {

// Columns that are worked on under a lock in one go: a tenth of a millisecond, as readers wait.
constexpr size_t kPiece = 128;
// The same for other registrations: a millisecond.
constexpr size_t kSlice = 1024;

// The record of series that were added together; empty if none were.
SeriesRecord RecordOf(const LayoutDefinition& definition, const Registering& registering) {
  SeriesRecord record;
  record.series_before = registering.series_before();
  record.task = definition.source.task;
  record.host = definition.source.host;
  absl::flat_hash_map<const LabelSet*, uint32_t> written;
  for (const Series* series : registering.series_added()) {
    const auto [set, added] =
        written.try_emplace(series->labels, static_cast<uint32_t>(record.label_sets.size()));
    if (added) record.label_sets.push_back(series->labels->labels);
    record.series.push_back({series->metric_id, set->second});
  }
  return record;
}

absl::Status CheckSize(const LayoutDefinition& definition) {
  if (definition.series.empty()) {
    return absl::InvalidArgumentError("a layout needs at least one series");
  }
  if (definition.series.size() > kMaxLayoutColumns) {
    return absl::InvalidArgumentError(
        absl::StrCat("a layout has at most ", kMaxLayoutColumns, " series"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Registration> SeriesIndex::Register(const LayoutDefinition& definition,
                                                   absl::FunctionRef<void()> between_slices) {
  TACHO_RETURN_IF_ERROR(CheckSize(definition));
  const std::shared_ptr<const LimitPolicy> policy = limits();
  Registering registering(&definition, policy.get());
  TACHO_RETURN_IF_ERROR(registering.CheckDistinct());
  for (;;) {
    auto layout = TryRegister(definition, *policy, between_slices, &registering);
    if (!layout.ok()) return layout.status();
    if (!layout->has_value()) continue;
    Registration result;
    result.layout = **std::move(layout);
    result.columns = registering.StoredColumns();
    result.folded = registering.TakeFolded();
    result.breaches = registering.TakeBreaches();
    result.limits = policy;
    TACHO_CHECK(result.layout == nullptr ||
                result.layout->series.size() == result.columns.size() + result.folded.size());
    return result;
  }
}

absl::StatusOr<SeriesIndex::CatalogPtr> SeriesIndex::AcquireNamed(absl::string_view job) {
  const auto id = FindJob(job);
  if (!id) return CatalogPtr();
  auto catalog = Acquire(*id);
  if (absl::IsNotFound(catalog.status())) return CatalogPtr();
  return catalog;
}

absl::StatusOr<std::optional<LayoutPtr>> SeriesIndex::TryRegister(
    const LayoutDefinition& definition, const LimitPolicy& limits,
    absl::FunctionRef<void()> between_slices, Registering* registering) {
  auto catalog = AcquireNamed(definition.source.job);
  if (!catalog.ok()) return catalog.status();
  std::unique_ptr<const JobCatalog> none;
  bool over_jobs = false;
  if (*catalog == nullptr) {
    over_jobs = !HasRoomForJob(definition.source.job);
    if (over_jobs && limits.totals().action != LimitAction::kObserve) {
      // Nothing of what an earlier turn found is stored: its job has gone since.
      const JobCatalog empty(0, definition.source.job);
      registering->Start(&empty);
      registering->NoteAll(Limit::kJobs, LimitAction::kReject);
      return std::optional<LayoutPtr>(nullptr);
    }
    none = std::make_unique<JobCatalog>(0, definition.source.job);
  }
  registering->Start(none != nullptr ? none.get() : catalog->get());
  Resolve(registering);
  if (!registering->anything_pending() && registering->LayoutSeries().empty()) {
    return std::optional<LayoutPtr>(nullptr);
  }
  if (*catalog == nullptr) {
    absl::StatusOr<JobId> id;
    {
      absl::MutexLock lock(&registering_);
      id = FindOrAddJobLocked(definition.source.job);
    }
    if (!id.ok()) return id.status();
    catalog = Acquire(*id);
    if (absl::IsNotFound(catalog.status())) return std::optional<LayoutPtr>();
    if (!catalog.ok()) return catalog.status();
    registering->Start(catalog->get());
    Resolve(registering);
    if (over_jobs) registering->NoteAll(Limit::kJobs, LimitAction::kObserve);
  }
  return AddRegistered(definition, limits, *catalog, between_slices, registering);
}

bool SeriesIndex::IsOverLayoutColumns(const LayoutDefinition& definition, const LimitPolicy& limits,
                                      const JobCatalog& catalog,
                                      const Registering& registering) const {
  absl::ReaderMutexLock lock(&mutex_);
  const uint64_t with_it = catalog.layout_columns() + registering.columns();
  if (with_it <= limits.totals().layout_columns_per_job) return false;
  // One with a series that is new is new itself.
  return registering.anything_pending() ||
         catalog.FindLayout(definition.source.attempt, definition.has_steps,
                            registering.LayoutSeries()) == nullptr;
}

bool SeriesIndex::RefuseForLayoutColumns(const LayoutDefinition& definition,
                                         const LimitPolicy& limits, const JobCatalog& catalog,
                                         Registering* registering) {
  if (!IsOverLayoutColumns(definition, limits, catalog, *registering)) return false;
  absl::MutexLock lock(&registering_);
  bool changed = false;
  {
    absl::ReaderMutexLock reading(&mutex_);
    changed = catalog.series_count() != registering->series_before();
  }
  if (changed) {  // What was to be added may be there now.
    registering->Start(&catalog);
    Resolve(registering);
    if (!IsOverLayoutColumns(definition, limits, catalog, *registering)) return false;
  }
  if (limits.totals().action == LimitAction::kObserve) {
    registering->NoteAll(Limit::kLayoutColumns, LimitAction::kObserve);
    return false;
  }
  registering->Start(&catalog);  // Nothing of what was found is stored.
  registering->NoteAll(Limit::kLayoutColumns, LimitAction::kReject);
  return true;
}

absl::StatusOr<bool> SeriesIndex::AddSlice(const LayoutDefinition& definition,
                                           const CatalogPtr& catalog, size_t begin, size_t end,
                                           Registering* registering) {
  absl::MutexLock lock(&registering_);
  if (!Add(catalog, begin, end, registering)) return false;
  const JobId job = catalog->id();
  rocksdb::WriteBatch write;
  for (const JobCatalog::MetricEntry* metric : registering->metrics_added()) {
    write.Put(column_family_, MetricKey(job, metric->id), EncodeMetric(metric->metric));
  }
  if (!registering->series_added().empty()) {
    write.Put(column_family_, SeriesKey(job, registering->series_added().front()->id),
              EncodeSeriesRecord(RecordOf(definition, *registering)));
    absl::ReaderMutexLock reading(&mutex_);
    write.Put(column_family_, NextIdsKey(), EncodeNextIds(next_));
  }
  const rocksdb::Status refused = kept_.Keep(std::move(write));
  if (!refused.ok()) return FromRocksDb(refused, "register a layout");
  return true;
}

absl::StatusOr<std::optional<LayoutPtr>> SeriesIndex::AddRegistered(
    const LayoutDefinition& definition, const LimitPolicy& limits, const CatalogPtr& catalog,
    absl::FunctionRef<void()> between_slices, Registering* registering) {
  // Layouts of one job that are registered at the same time may all pass: together they may exceed
  // the limit by what each of them has.
  if (RefuseForLayoutColumns(definition, limits, *catalog, registering)) {
    return std::optional<LayoutPtr>(nullptr);
  }
  const size_t columns = registering->columns();
  for (size_t begin = 0; begin < columns && registering->anything_pending(); begin += kSlice) {
    if (begin > 0) between_slices();
    TACHO_ASSIGN_OR_RETURN(
        const bool added,
        AddSlice(definition, catalog, begin, std::min(columns, begin + kSlice), registering));
    if (!added) return std::optional<LayoutPtr>();
  }
  absl::MutexLock lock(&registering_);
  rocksdb::WriteBatch write;
  LayoutPtr layout = FindOrAddLayout(definition, catalog, *registering, &write);
  if (layout == nullptr && !registering->LayoutSeries().empty()) return std::optional<LayoutPtr>();
  // What was added above is in memory only until rows that need it are written. No layout is handed
  // out while the disk refuses, also if it was found in memory.
  if (const rocksdb::Status refused = kept_.Keep(std::move(write)); !refused.ok()) {
    return FromRocksDb(refused, "register a layout");
  }
  return std::optional<LayoutPtr>(std::move(layout));
}

void SeriesIndex::Resolve(Registering* registering) {
  const size_t columns = registering->columns();
  for (size_t begin = 0; begin < columns; begin += kPiece) {
    absl::ReaderMutexLock lock(&mutex_);
    if (begin == 0) registering->BeginRecord();
    registering->Resolve(begin, std::min(columns, begin + kPiece), use());
  }
}

bool SeriesIndex::Add(const CatalogPtr& catalog, size_t begin, size_t end,
                      Registering* registering) {
  for (size_t at = begin; at < end; at += kPiece) {
    absl::MutexLock lock(&mutex_);
    if (at == begin) registering->BeginRecord();
    Job* const job = FindById(catalog->id());
    if (job == nullptr) return false;
    if (job->catalog == nullptr) SetCatalog(job, catalog);  // Left at this very moment.
    IndexUse used = use();
    const uint64_t before = used.stored_series;
    registering->Add(at, std::min(end, at + kPiece), catalog.get(), &used, &next_.series);
    job->series += used.stored_series - before;
    series_ = used.stored_series;
    series_in_memory_ = used.series;
    text_bytes_ = used.text_bytes;
  }
  return true;
}

LayoutPtr SeriesIndex::FindOrAddLayout(const LayoutDefinition& definition,
                                       const CatalogPtr& catalog, const Registering& registering,
                                       rocksdb::WriteBatch* write) {
  const JobId job_id = catalog->id();
  std::vector<const Series*> series = registering.LayoutSeries();
  const Layout* layout = nullptr;
  absl::MutexLock lock(&mutex_);
  Job* const job = FindById(job_id);
  if (job == nullptr) return nullptr;
  if (job->catalog == nullptr) SetCatalog(job, catalog);  // Left at this very moment.
  if (!series.empty()) {
    const uint32_t attempt = definition.source.attempt;
    layout = catalog->FindLayout(attempt, definition.has_steps, series);
    if (layout == nullptr) {
      LayoutRecord record{.attempt = attempt, .has_steps = definition.has_steps};
      for (const Series* one : series) record.Add(one->id);
      layout = catalog->AddLayout({.id = next_.layout++,
                                   .attempt = attempt,
                                   .has_steps = definition.has_steps,
                                   .series = std::move(series)});
      ++layouts_in_memory_;
      write->Put(column_family_, LayoutKey(job_id, layout->id), EncodeLayoutRecord(record));
    }
  }
  if (write->Count() > 0) write->Put(column_family_, NextIdsKey(), EncodeNextIds(next_));
  if (layout == nullptr) return nullptr;
  return LayoutPtr(catalog, layout);
}

}  // namespace tacho::storage
