#include "storage/series_index.h"

#include <algorithm>
#include <tuple>
#include <utility>

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
  PutTask(series.task, &out);
  PutString(*series.host, &out);
  PutVarint(series.labels.size(), &out);
  for (const auto& [name, value] : series.labels) {
    PutString(name, &out);
    PutString(value, &out);
  }
  return out;
}

std::string EncodeLayout(uint32_t attempt, bool has_steps, const std::vector<SeriesPtr>& series) {
  std::string out;
  PutVarint(attempt, &out);
  out.push_back(has_steps ? 1 : 0);
  PutVarint(series.size(), &out);
  SeriesId previous = 0;
  for (const SeriesPtr& column : series) {
    PutVarint(ZigZag(static_cast<int64_t>(column->id - previous)), &out);
    previous = column->id;
  }
  return out;
}

bool SeriesOrder(const SeriesPtr& a, const SeriesPtr& b) {
  return std::tie(a->metric->name, a->task, *a->host, a->labels) <
         std::tie(b->metric->name, b->task, *b->host, b->labels);
}

}  // namespace

SeriesIndex::SeriesIndex(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, Limits limits)
    : db_(db), column_family_(column_family), limits_(limits) {}

std::string SeriesIndex::IdentityOf(MetricId metric, std::optional<uint32_t> task,
                                    absl::string_view host, const Labels& labels) {
  std::string identity;
  PutVarint(metric, &identity);
  PutTask(task, &identity);
  PutString(host, &identity);
  for (const auto& [name, value] : labels) {
    PutString(name, &identity);
    PutString(value, &identity);
  }
  return identity;
}

std::string SeriesIndex::EncodeNextIds() const {
  std::string out;
  PutVarint(next_job_, &out);
  PutVarint(next_series_, &out);
  PutVarint(next_layout_, &out);
  return out;
}

SeriesIndex::JobEntry* SeriesIndex::AddJob(JobId id, absl::string_view name) {
  auto entry = std::make_unique<JobEntry>();
  entry->id = id;
  entry->name = std::make_shared<const std::string>(name);
  JobEntry* const job = entry.get();
  jobs_[*job->name] = job;
  jobs_by_id_[id] = std::move(entry);
  return job;
}

SeriesIndex::JobEntry* SeriesIndex::FindOrAddJobEntry(absl::string_view name,
                                                      rocksdb::WriteBatch* write) {
  if (const auto found = jobs_.find(name); found != jobs_.end()) return found->second;
  JobEntry* const job = AddJob(next_job_++, name);
  write->Put(column_family_, JobKey(job->id), *job->name);
  return job;
}

SeriesIndex::MetricEntry* SeriesIndex::FindOrAddMetric(JobEntry* job, const Metric& metric,
                                                       rocksdb::WriteBatch* write) {
  const auto [found, added] = job->metrics.try_emplace(metric.name);
  MetricEntry* const entry = &found->second;
  if (added) {
    entry->id = job->next_metric++;
    entry->metric = std::make_shared<const Metric>(metric);
    job->metrics_by_id[entry->id] = entry;
    write->Put(column_family_, MetricKey(job->id, entry->id), EncodeMetric(metric));
  }
  return entry;
}

std::shared_ptr<const std::string> SeriesIndex::InternHost(absl::string_view host) {
  auto& interned = hosts_[host];
  if (interned == nullptr) interned = std::make_shared<const std::string>(host);
  return interned;
}

void SeriesIndex::AddSeries(JobEntry* job, MetricEntry* metric, std::shared_ptr<Series> series) {
  series->job_id = job->id;
  series->job = job->name;
  series->metric_id = metric->id;
  series->metric = metric->metric;
  const SeriesPtr added = std::move(series);
  metric->series.push_back(added);
  job->series[IdentityOf(metric->id, added->task, *added->host, added->labels)] = added;
  job->series_by_id[added->id] = added;
  ++series_count_;
}

SeriesPtr SeriesIndex::FindOrAddSeries(JobEntry* job, const Source& source,
                                       const SeriesDefinition& definition,
                                       rocksdb::WriteBatch* write,
                                       Store::Registration::Refusal* refusal) {
  const auto metric = job->metrics.find(definition.metric.name);
  if (metric != job->metrics.end()) {
    const auto found = job->series.find(
        IdentityOf(metric->second.id, source.task, source.host, definition.labels));
    if (found != job->series.end()) return found->second;
  }
  refusal->job_limit = job->series.size() >= limits_.max_series_per_job;
  if (refusal->job_limit || series_count_ >= limits_.max_series) return nullptr;
  MetricEntry* const entry = FindOrAddMetric(job, definition.metric, write);
  auto series = std::make_shared<Series>();
  series->id = next_series_++;
  series->metric_id = entry->id;
  series->task = source.task;
  series->host = InternHost(source.host);
  series->labels = definition.labels;
  write->Put(column_family_, SeriesKey(job->id, series->id), EncodeSeries(*series));
  SeriesPtr added = series;
  AddSeries(job, entry, std::move(series));
  return added;
}

LayoutPtr SeriesIndex::FindOrAddLayout(JobEntry* job, const LayoutDefinition& definition,
                                       std::vector<SeriesPtr> series, rocksdb::WriteBatch* write) {
  std::string record = EncodeLayout(definition.source.attempt, definition.has_steps, series);
  LayoutPtr& known = job->layouts[record];
  if (known == nullptr) {
    known = std::make_shared<const Layout>(Layout{.id = next_layout_++,
                                                  .attempt = definition.source.attempt,
                                                  .has_steps = definition.has_steps,
                                                  .series = std::move(series)});
    layouts_[known->id] = known;
    write->Put(column_family_, LayoutKey(job->id, known->id), record);
  }
  return known;
}

absl::StatusOr<Store::Registration> SeriesIndex::Register(const LayoutDefinition& definition) {
  if (definition.series.empty()) {
    return absl::InvalidArgumentError("a layout needs at least one series");
  }
  absl::MutexLock lock(&mutex_);
  rocksdb::WriteBatch write;
  JobEntry* const job = FindOrAddJobEntry(definition.source.job, &write);
  Store::Registration registration;
  std::vector<SeriesPtr> series;
  absl::flat_hash_set<SeriesId> seen;
  // What the index has in memory must be written even if the layout as a whole is refused.
  absl::Status twice;
  for (uint32_t column = 0; column < definition.series.size(); ++column) {
    Store::Registration::Refusal refusal{.column = column};
    SeriesPtr found =
        FindOrAddSeries(job, definition.source, definition.series[column], &write, &refusal);
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
    series.push_back(std::move(found));
  }
  if (twice.ok() && !series.empty()) {
    registration.layout = FindOrAddLayout(job, definition, std::move(series), &write);
  }
  if (write.Count() > 0) {
    write.Put(column_family_, NextIdsKey(), EncodeNextIds());
    // If the disk refuses, what was added above is in memory only. The database then refuses every
    // later write too, rows of the layout included, so nothing can refer to what was not written.
    const rocksdb::Status status = db_->Write(rocksdb::WriteOptions(), &write);
    if (!status.ok()) return FromRocksDb(status, "register a layout");
  }
  if (!twice.ok()) return twice;
  return registration;
}

absl::StatusOr<JobId> SeriesIndex::FindOrAddJob(absl::string_view job) {
  absl::MutexLock lock(&mutex_);
  rocksdb::WriteBatch write;
  const JobId id = FindOrAddJobEntry(job, &write)->id;
  if (write.Count() > 0) {
    write.Put(column_family_, NextIdsKey(), EncodeNextIds());
    const rocksdb::Status status = db_->Write(rocksdb::WriteOptions(), &write);
    if (!status.ok()) return FromRocksDb(status, "register a job");
  }
  return id;
}

std::optional<JobId> SeriesIndex::FindJob(absl::string_view job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return std::nullopt;
  return found->second->id;
}

LayoutPtr SeriesIndex::FindLayout(LayoutId id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = layouts_.find(id);
  return found == layouts_.end() ? nullptr : found->second;
}

absl::StatusOr<std::vector<SeriesPtr>> SeriesIndex::Find(const Selector& selector,
                                                         size_t limit) const {
  std::vector<SeriesPtr> out;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(selector.job);
    if (found == jobs_.end()) return out;
    const auto take = [&](const MetricEntry& metric) {
      for (const SeriesPtr& series : metric.series) {
        if (out.size() > limit) return;
        if (std::all_of(selector.matchers.begin(), selector.matchers.end(),
                        [&](const Matcher& matcher) { return matcher.Matches(*series); })) {
          out.push_back(series);
        }
      }
    };
    const auto& metrics = found->second->metrics;
    if (selector.metrics.empty()) {
      for (const auto& [name, metric] : metrics) take(metric);
    }
    for (const std::string& name : selector.metrics) {
      if (const auto metric = metrics.find(name); metric != metrics.end()) take(metric->second);
    }
  }
  if (out.size() > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", limit, " series match; name a metric or add a matcher"));
  }
  std::sort(out.begin(), out.end(), SeriesOrder);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<Metric> SeriesIndex::Metrics(JobId job) const {
  absl::MutexLock lock(&mutex_);
  std::vector<Metric> out;
  const auto found = jobs_by_id_.find(job);
  if (found == jobs_by_id_.end()) return out;
  for (const auto& [name, entry] : found->second->metrics) out.push_back(*entry.metric);
  return out;
}

std::vector<std::pair<JobId, std::string>> SeriesIndex::Jobs() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::pair<JobId, std::string>> out;
  for (const auto& [id, job] : jobs_by_id_) out.emplace_back(id, *job->name);
  return out;
}

uint64_t SeriesIndex::SeriesCount(JobId job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_by_id_.find(job);
  return found == jobs_by_id_.end() ? 0 : found->second->series.size();
}

void SeriesIndex::RemoveJob(JobId id, rocksdb::WriteBatch* write) {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_by_id_.find(id);
  if (found == jobs_by_id_.end()) return;
  JobEntry* const job = found->second.get();
  for (const auto& [record, layout] : job->layouts) layouts_.erase(layout->id);
  series_count_ -= job->series.size();
  write->Delete(column_family_, JobKey(id));
  for (const char kind : {'M', 'S', 'L'}) {
    const std::string prefix = JobPrefix(kind, id);
    write->DeleteRange(column_family_, prefix, PrefixEnd(prefix));
  }
  jobs_.erase(*job->name);
  jobs_by_id_.erase(found);
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
  }
  return FromRocksDb(it->status(), "read the series index");
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
    if (jobs_by_id_.contains(job_id)) return damaged();
    AddJob(job_id, value);
    return absl::OkStatus();
  }
  const auto found = jobs_by_id_.find(job_id);
  if (found == jobs_by_id_.end()) return damaged();
  JobEntry* const job = found->second.get();
  if (kind == 'M') {
    Metric metric;
    metric.type = static_cast<MetricType>(v.Byte());
    metric.name = std::string(v.String());
    metric.unit = std::string(v.String());
    metric.help = std::string(v.String());
    MetricEntry entry{.id = k.Be32(), .metric = std::make_shared<const Metric>(metric)};
    if (!k.AtEnd() || !v.AtEnd()) return damaged();
    job->next_metric = std::max(job->next_metric, entry.id + 1);
    const MetricId id = entry.id;
    job->metrics_by_id[id] = &(job->metrics[metric.name] = std::move(entry));
    return absl::OkStatus();
  }
  if (kind == 'S') {
    auto series = std::make_shared<Series>();
    series->id = k.Be64();
    const auto metric = job->metrics_by_id.find(static_cast<MetricId>(v.Varint()));
    series->task = ReadTask(&v);
    series->host = InternHost(v.String());
    const uint64_t labels = v.Varint();
    for (uint64_t i = 0; i < labels && v.ok(); ++i) {
      const absl::string_view name = v.String();
      const absl::string_view label_value = v.String();
      series->labels.emplace_back(name, label_value);
    }
    if (!k.AtEnd() || !v.AtEnd() || metric == job->metrics_by_id.end()) return damaged();
    AddSeries(job, metric->second, std::move(series));
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
    const auto series = job->series_by_id.find(previous);
    if (series == job->series_by_id.end()) return damaged();
    layout.series.push_back(series->second);
  }
  if (!k.AtEnd() || !v.AtEnd() || layout.series.empty()) return damaged();
  const auto loaded = std::make_shared<const Layout>(std::move(layout));
  job->layouts[std::string(value)] = loaded;
  layouts_[loaded->id] = loaded;
  return absl::OkStatus();
}

}  // namespace tacho::storage
