#include "storage/series_index.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/bytes.h"
#include "storage/keys.h"
#include "storage/rocksdb_status.h"

namespace tacho::storage {
namespace {

// Records of the column family "index". docs/storage_format.md draws them.

std::string EncodeMetric(const Metric& metric) {
  std::string out(1, static_cast<char>(metric.type));
  PutString(metric.name, &out);
  PutString(metric.unit, &out);
  PutString(metric.help, &out);
  return out;
}

void PutTask(std::optional<uint32_t> task, std::string* out) {
  PutVarint(task ? uint64_t{*task} + 1 : 0, out);
}

std::optional<uint32_t> ReadTask(ByteReader* in) {
  const uint64_t task = in->Varint();
  if (task == 0) return std::nullopt;
  return static_cast<uint32_t>(task - 1);
}

std::string EncodeSeries(const Series& series) {
  std::string out;
  PutVarint(series.metric_id, &out);
  PutTask(series.source->task, &out);
  PutString(series.source->host, &out);
  PutVarint(series.labels->size(), &out);
  for (const auto& [name, value] : *series.labels) {
    PutString(name, &out);
    PutString(value, &out);
  }
  return out;
}

std::string EncodeLayout(uint32_t attempt, bool has_steps,
                         const std::vector<const Series*>& series) {
  std::string out;
  PutVarint(attempt, &out);
  out.push_back(has_steps ? 1 : 0);
  PutVarint(series.size(), &out);
  SeriesId previous = 0;
  for (const Series* column : series) {
    PutVarint(ZigZag(static_cast<int64_t>(column->id - previous)), &out);
    previous = column->id;
  }
  return out;
}

bool SeriesOrder(const Series* a, const Series* b) {
  return std::tie(a->metric->name, a->source->task, a->source->host, a->labels->labels) <
         std::tie(b->metric->name, b->source->task, b->source->host, b->labels->labels);
}

}  // namespace

SeriesIndex::SeriesIndex(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, Limits limits)
    : db_(db), kept_(db), column_family_(column_family), limits_(limits) {}

std::string SeriesIndex::EncodeNextIds() const {
  std::string out;
  PutVarint(next_job_, &out);
  PutVarint(next_series_, &out);
  PutVarint(next_layout_, &out);
  return out;
}

SeriesIndex::CatalogPtr SeriesIndex::AddJob(JobId id, absl::string_view name) {
  auto catalog = std::make_shared<JobCatalog>(id, name);
  jobs_[catalog->name()] = id;
  catalogs_[id] = catalog;
  return catalog;
}

SeriesIndex::CatalogPtr SeriesIndex::FindOrAddCatalog(absl::string_view name,
                                                      rocksdb::WriteBatch* write) {
  if (const auto found = jobs_.find(name); found != jobs_.end()) return catalogs_[found->second];
  CatalogPtr job = AddJob(next_job_++, name);
  write->Put(column_family_, JobKey(job->id()), job->name());
  return job;
}

const Series* SeriesIndex::FindOrAddSeries(JobCatalog* job, const SeriesSource* source,
                                           const SeriesDefinition& definition,
                                           rocksdb::WriteBatch* write,
                                           Store::Registration::Refusal* refusal) {
  const LabelSet* const labels = job->InternLabels(definition.labels);
  const JobCatalog::MetricEntry* metric = job->FindMetric(definition.metric.name);
  if (metric != nullptr) {
    const Series* const known = job->FindSeries(metric->id, source, labels);
    if (known != nullptr) return known;
  }
  refusal->job_limit = job->series().size() >= limits_.max_series_per_job;
  if (refusal->job_limit || series_count_ >= limits_.max_series) return nullptr;
  if (metric == nullptr) {
    metric = job->AddMetric(definition.metric);
    write->Put(column_family_, MetricKey(job->id(), metric->id), EncodeMetric(metric->metric));
  }
  const Series* const added = job->AddSeries(next_series_++, metric->id, source, labels);
  ++series_count_;
  write->Put(column_family_, SeriesKey(job->id(), added->id), EncodeSeries(*added));
  return added;
}

const Layout* SeriesIndex::FindOrAddLayout(JobCatalog* job, const LayoutDefinition& definition,
                                           std::vector<const Series*> series,
                                           rocksdb::WriteBatch* write) {
  const uint32_t attempt = definition.source.attempt;
  const Layout* const known = job->FindLayout(attempt, definition.has_steps, series);
  if (known != nullptr) return known;
  const Layout* const added = job->AddLayout({.id = next_layout_++,
                                              .attempt = attempt,
                                              .has_steps = definition.has_steps,
                                              .series = std::move(series)});
  write->Put(column_family_, LayoutKey(job->id(), added->id),
             EncodeLayout(attempt, added->has_steps, added->series));
  return added;
}

absl::StatusOr<Store::Registration> SeriesIndex::Register(const LayoutDefinition& definition) {
  if (definition.series.empty()) {
    return absl::InvalidArgumentError("a layout needs at least one series");
  }
  absl::MutexLock lock(&mutex_);
  rocksdb::WriteBatch write;
  const CatalogPtr job = FindOrAddCatalog(definition.source.job, &write);
  const SeriesSource* const source =
      job->InternSource(definition.source.task, definition.source.host);
  Store::Registration registration;
  std::vector<const Series*> series;
  absl::flat_hash_set<SeriesId> seen;
  // What the index has in memory must be written even if the layout as a whole is refused.
  absl::Status twice;
  for (uint32_t column = 0; column < definition.series.size(); ++column) {
    Store::Registration::Refusal refusal{.column = column};
    const Series* const found =
        FindOrAddSeries(job.get(), source, definition.series[column], &write, &refusal);
    if (found == nullptr) {
      registration.refused.push_back(refusal);
      continue;
    }
    if (!seen.insert(found->id).second) {
      twice = absl::InvalidArgumentError(absl::StrCat("series ", column, " of the layout, ",
                                                      found->metric->name,
                                                      ", stands in it twice with the same labels"));
      break;
    }
    registration.columns.push_back(column);
    series.push_back(found);
  }
  if (twice.ok() && !series.empty()) {
    const Layout* const layout = FindOrAddLayout(job.get(), definition, std::move(series), &write);
    registration.layout = LayoutPtr(job, layout);
    layouts_[layout->id] = registration.layout;
  }
  if (write.Count() > 0) write.Put(column_family_, NextIdsKey(), EncodeNextIds());
  // If the disk refuses, what was added above is in memory only: no layout is handed out before it
  // is written, also if it was found in memory.
  if (absl::Status s = kept_.Write(std::move(write), "register a layout"); !s.ok()) return s;
  if (!twice.ok()) return twice;
  return registration;
}

absl::StatusOr<JobId> SeriesIndex::FindOrAddJob(absl::string_view job) {
  absl::MutexLock lock(&mutex_);
  rocksdb::WriteBatch write;
  const JobId id = FindOrAddCatalog(job, &write)->id();
  if (write.Count() > 0) write.Put(column_family_, NextIdsKey(), EncodeNextIds());
  if (absl::Status s = kept_.Write(std::move(write), "register a job"); !s.ok()) return s;
  return id;
}

std::optional<JobId> SeriesIndex::FindJob(absl::string_view job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return std::nullopt;
  return found->second;
}

LayoutPtr SeriesIndex::FindLayout(LayoutId id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = layouts_.find(id);
  return found == layouts_.end() ? nullptr : found->second;
}

absl::StatusOr<std::vector<SeriesPtr>> SeriesIndex::Find(const Selector& selector,
                                                         size_t limit) const {
  CatalogPtr job;
  std::vector<const Series*> found;
  {
    absl::MutexLock lock(&mutex_);
    const auto id = jobs_.find(selector.job);
    if (id == jobs_.end()) return std::vector<SeriesPtr>();
    job = catalogs_.at(id->second);
    const auto take = [&](const JobCatalog::MetricEntry& metric) {
      for (const uint32_t number : metric.series) {
        if (found.size() > limit) return;
        const Series& series = job->series()[number];
        if (std::all_of(selector.matchers.begin(), selector.matchers.end(),
                        [&](const Matcher& matcher) { return matcher.Matches(series); })) {
          found.push_back(&series);
        }
      }
    };
    if (selector.metrics.empty()) {
      for (const JobCatalog::MetricEntry& metric : job->metrics()) take(metric);
    }
    for (const std::string& name : selector.metrics) {
      if (const auto* metric = job->FindMetric(name); metric != nullptr) take(*metric);
    }
  }
  if (found.size() > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", limit, " series match; name a metric or add a matcher"));
  }
  std::sort(found.begin(), found.end(), SeriesOrder);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<SeriesPtr> out;
  out.reserve(found.size());
  for (const Series* series : found) out.emplace_back(job, series);
  return out;
}

std::vector<Metric> SeriesIndex::Metrics(JobId job) const {
  absl::MutexLock lock(&mutex_);
  std::vector<Metric> out;
  const auto found = catalogs_.find(job);
  if (found == catalogs_.end()) return out;
  for (const auto& entry : found->second->metrics()) out.push_back(entry.metric);
  std::sort(out.begin(), out.end(),
            [](const Metric& a, const Metric& b) { return a.name < b.name; });
  return out;
}

std::vector<std::pair<SeriesSource, uint64_t>> SeriesIndex::SourceCounts(JobId job) const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::pair<SeriesSource, uint64_t>> out;
  const auto found = catalogs_.find(job);
  if (found == catalogs_.end()) return out;
  for (const JobCatalog::SourceEntry& entry : found->second->sources()) {
    uint64_t series = 0;
    for (const auto& [first, end] : entry.series) series += end - first;
    out.emplace_back(entry.source, series);
  }
  return out;
}

std::vector<std::pair<JobId, std::string>> SeriesIndex::Jobs() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::pair<JobId, std::string>> out;
  for (const auto& [id, job] : catalogs_) out.emplace_back(id, job->name());
  return out;
}

uint64_t SeriesIndex::SeriesCount(JobId job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = catalogs_.find(job);
  return found == catalogs_.end() ? 0 : found->second->series().size();
}

void SeriesIndex::RemoveJob(JobId id, rocksdb::WriteBatch* write) {
  absl::MutexLock lock(&mutex_);
  const auto found = catalogs_.find(id);
  if (found == catalogs_.end()) return;
  for (const Layout& layout : found->second->layouts()) layouts_.erase(layout.id);
  series_count_ -= found->second->series().size();
  write->Delete(column_family_, JobKey(id));
  for (const char kind : {'M', 'S', 'L'}) {
    const std::string prefix = JobPrefix(kind, id);
    write->DeleteRange(column_family_, prefix, PrefixEnd(prefix));
  }
  jobs_.erase(found->second->name());
  catalogs_.erase(found);
}

SeriesIndex::Counts SeriesIndex::counts() const {
  absl::MutexLock lock(&mutex_);
  return {jobs_.size(), series_count_, layouts_.size()};
}

absl::Status SeriesIndex::Load() {
  absl::MutexLock lock(&mutex_);
  const std::unique_ptr<rocksdb::Iterator> it(
      db_->NewIterator(rocksdb::ReadOptions(), column_family_));
  // A record may only refer to what was read before it.
  for (const char kind : {'N', 'J', 'M', 'S', 'L'}) {
    const std::string prefix(1, kind);
    for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
      absl::Status status = LoadRecord(View(it->key()), View(it->value()));
      if (!status.ok()) return status;
    }
    // Before the next Seek() forgets it.
    if (!it->status().ok()) return FromRocksDb(it->status(), "read the series index");
  }
  return absl::OkStatus();
}

absl::Status SeriesIndex::LoadRecord(absl::string_view key, absl::string_view value) {
  const auto damaged = [&] {
    return absl::DataLossError(absl::StrCat("the record of the series index under ",
                                            absl::BytesToHexString(key), " is damaged"));
  };
  ByteReader k(key);
  ByteReader v(value);
  const char kind = static_cast<char>(k.Byte());
  if (kind == 'N') {
    next_job_ = static_cast<JobId>(v.Varint());
    next_series_ = v.Varint();
    next_layout_ = v.Varint();
    return v.AtEnd() ? absl::OkStatus() : damaged();
  }
  const JobId job_id = k.Be32();
  if (!k.ok()) return damaged();
  if (kind == 'J') {
    if (catalogs_.contains(job_id)) return damaged();
    AddJob(job_id, value);
    return absl::OkStatus();
  }
  const auto found = catalogs_.find(job_id);
  if (found == catalogs_.end()) return damaged();
  JobCatalog* const job = found->second.get();
  if (kind == 'M') {
    Metric metric;
    metric.type = static_cast<MetricType>(v.Byte());
    metric.name = std::string(v.String());
    metric.unit = std::string(v.String());
    metric.help = std::string(v.String());
    const MetricId id = k.Be32();
    if (!k.AtEnd() || !v.AtEnd() || job->FindMetric(metric.name) != nullptr) return damaged();
    return job->AddMetric(metric)->id == id ? absl::OkStatus() : damaged();
  }
  if (kind == 'S') {
    const SeriesId id = k.Be64();
    const auto* metric = job->FindMetric(static_cast<MetricId>(v.Varint()));
    const auto task = ReadTask(&v);
    const SeriesSource* const source = job->InternSource(task, v.String());
    std::vector<LabelSet::Label> labels;
    const uint64_t count = v.Varint();
    for (uint64_t i = 0; i < count && v.ok(); ++i) {
      const absl::string_view name = v.String();
      labels.emplace_back(name, v.String());
    }
    if (!k.AtEnd() || !v.AtEnd() || metric == nullptr) return damaged();
    job->AddSeries(id, metric->id, source, job->InternLabels(absl::MakeConstSpan(labels)));
    ++series_count_;
    return absl::OkStatus();
  }
  Layout layout;
  layout.id = k.Be64();
  layout.attempt = static_cast<uint32_t>(v.Varint());
  layout.has_steps = v.Byte() != 0;
  const uint64_t columns = v.Varint();
  SeriesId previous = 0;
  for (uint64_t i = 0; i < columns && v.ok(); ++i) {
    previous += static_cast<uint64_t>(UnZigZag(v.Varint()));
    const Series* const series = job->FindSeries(previous);
    if (series == nullptr) return damaged();
    layout.series.push_back(series);
  }
  if (!k.AtEnd() || !v.AtEnd() || layout.series.empty()) return damaged();
  const Layout* const loaded = job->AddLayout(std::move(layout));
  layouts_[loaded->id] = LayoutPtr(found->second, loaded);
  return absl::OkStatus();
}

}  // namespace tacho::storage
