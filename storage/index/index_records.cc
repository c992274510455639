// Encodes and decodes the records of the index, and loads the catalogue of a job from them. A
// record that refers to one that was not loaded before it is damaged.
#include "storage/index/index_records.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

// A varint that must fit 32 bits.
std::optional<uint32_t> Read32(ByteReader* in) {
  const uint64_t value = in->Varint();
  if (value > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(value);
}

std::optional<std::vector<LabelSet::Label>> ReadLabels(ByteReader* in) {
  const uint64_t count = in->Varint();
  if (count > in->rest().size()) return std::nullopt;
  std::vector<LabelSet::Label> labels;
  labels.reserve(count);
  for (uint64_t i = 0; i < count && in->ok(); ++i) {
    const absl::string_view name = in->String();
    labels.emplace_back(name, in->String());
  }
  return labels;
}

absl::Status DamagedRecord(absl::string_view key) {
  return absl::DataLossError(absl::StrCat("the record of the series index under ",
                                          absl::BytesToHexString(key), " is damaged"));
}

// Each returns false if the record is damaged. `id` is the part of its key that is left to read.

bool LoadMetric(ByteReader id, absl::string_view value, JobCatalog* catalog) {
  const MetricId metric_id = id.Be32();
  const auto metric = DecodeMetric(value);
  if (!id.AtEnd() || !metric || catalog->FindMetric(metric->name) != nullptr) return false;
  return catalog->AddMetric(*metric)->id == metric_id;
}

bool LoadSeries(ByteReader id, absl::string_view value, JobCatalog* catalog) {
  const SeriesId first = id.Be64();
  const auto record = DecodeSeriesRecord(value);
  const size_t before = catalog->series_count();
  if (!id.AtEnd() || !record || record->series_before != before || first == 0 ||
      first > UINT64_MAX - record->series.size() ||
      (before > 0 && catalog->series(static_cast<uint32_t>(before - 1)).id >= first)) {
    return false;
  }
  const SeriesSource* const source = catalog->InternSource(record->task, record->host);
  std::vector<const LabelSet*> label_sets;
  label_sets.reserve(record->label_sets.size());
  for (const auto& labels : record->label_sets) label_sets.push_back(catalog->InternLabels(labels));
  SeriesId next = first;
  for (const SeriesRecord::One& one : record->series) {
    if (catalog->FindMetric(one.metric) == nullptr ||
        catalog->AddSeries(next++, one.metric, source, label_sets[one.labels]) == nullptr) {
      return false;
    }
  }
  return true;
}

bool LoadLayout(ByteReader id, absl::string_view value, JobCatalog* catalog) {
  Layout layout;
  layout.id = id.Be64();
  const auto record = DecodeLayoutRecord(value);
  if (!id.AtEnd() || !record) return false;
  if (!catalog->layouts().empty() && catalog->layouts().back().id >= layout.id) return false;
  layout.attempt = record->attempt;
  layout.has_steps = record->has_steps;
  layout.series.reserve(record->columns());
  for (const auto& [first, count] : record->ranges) {
    const auto number = catalog->FindNumber(first);
    if (!number || count > catalog->series_count() - *number) return false;
    for (uint64_t i = 0; i < count; ++i) {
      const Series& series = catalog->series(static_cast<uint32_t>(*number + i));
      if (series.id != first + i) return false;
      layout.series.push_back(&series);
    }
  }
  if (layout.series.empty()) return false;
  for (const Series* series : layout.series) {
    if (series->source != layout.series.front()->source) return false;
  }
  catalog->AddLayout(std::move(layout));
  return true;
}

}  // namespace

std::string EncodeNextIds(const NextIds& next) {
  std::string out;
  PutVarint(next.job, &out);
  PutVarint(next.series, &out);
  PutVarint(next.layout, &out);
  return out;
}

std::optional<NextIds> DecodeNextIds(absl::string_view bytes) {
  ByteReader in(bytes);
  NextIds next;
  const auto job = Read32(&in);
  next.series = in.Varint();
  next.layout = in.Varint();
  if (!in.AtEnd() || !job || *job == 0 || next.series == 0 || next.layout == 0) {
    return std::nullopt;
  }
  next.job = *job;
  return next;
}

std::string EncodeMetric(const Metric& metric) {
  std::string out(1, static_cast<char>(metric.type));
  PutString(metric.name, &out);
  PutString(metric.unit, &out);
  PutString(metric.help, &out);
  return out;
}

std::optional<Metric> DecodeMetric(absl::string_view bytes) {
  ByteReader in(bytes);
  Metric metric;
  const uint8_t type = in.Byte();
  metric.type = static_cast<MetricType>(type);
  metric.name = std::string(in.String());
  metric.unit = std::string(in.String());
  metric.help = std::string(in.String());
  const bool known = type >= static_cast<uint8_t>(MetricType::kGauge) &&
                     type <= static_cast<uint8_t>(MetricType::kHistogram);
  if (!in.AtEnd() || !known) return std::nullopt;
  return metric;
}

std::string EncodeSeriesRecord(const SeriesRecord& record) {
  std::string out;
  PutVarint(record.series_before, &out);
  PutVarint(record.task ? uint64_t{*record.task} + 1 : 0, &out);
  PutString(record.host, &out);
  PutVarint(record.label_sets.size(), &out);
  for (const auto& labels : record.label_sets) {
    PutVarint(labels.size(), &out);
    for (const auto& [name, value] : labels) {
      PutString(name, &out);
      PutString(value, &out);
    }
  }
  PutVarint(record.series.size(), &out);
  int64_t previous = 0;
  for (const SeriesRecord::One& one : record.series) {
    PutVarint(ZigZag(int64_t{one.metric} - previous), &out);
    PutVarint(one.labels, &out);
    previous = one.metric;
  }
  return out;
}

std::optional<SeriesRecord> DecodeSeriesRecord(absl::string_view bytes) {
  ByteReader in(bytes);
  SeriesRecord record;
  record.series_before = in.Varint();
  const uint64_t task = in.Varint();
  if (task > uint64_t{UINT32_MAX} + 1) return std::nullopt;
  if (task != 0) record.task = static_cast<uint32_t>(task - 1);
  record.host = in.String();
  const uint64_t label_sets = in.Varint();
  if (label_sets > bytes.size()) return std::nullopt;
  for (uint64_t i = 0; i < label_sets && in.ok(); ++i) {
    auto labels = ReadLabels(&in);
    if (!labels) return std::nullopt;
    record.label_sets.push_back(*std::move(labels));
  }
  const uint64_t series = in.Varint();
  if (!in.ok() || series == 0 || series > in.rest().size()) return std::nullopt;
  record.series.reserve(series);
  uint64_t metric = 0;
  for (uint64_t i = 0; i < series; ++i) {
    metric += static_cast<uint64_t>(UnZigZag(in.Varint()));
    const uint64_t labels = in.Varint();
    if (metric == 0 || metric > UINT32_MAX || labels >= label_sets) return std::nullopt;
    record.series.push_back({static_cast<MetricId>(metric), static_cast<uint32_t>(labels)});
  }
  if (!in.AtEnd()) return std::nullopt;
  return record;
}

void LayoutRecord::Add(SeriesId id) {
  if (!ranges.empty() && ranges.back().first + ranges.back().second == id) {
    ++ranges.back().second;
  } else {
    ranges.emplace_back(id, 1);
  }
}

uint64_t LayoutRecord::columns() const {
  uint64_t columns = 0;
  for (const auto& [first, count] : ranges) columns += count;
  return columns;
}

std::string EncodeLayoutRecord(const LayoutRecord& record) {
  std::string out;
  PutVarint(record.attempt, &out);
  out.push_back(record.has_steps ? 1 : 0);
  PutVarint(record.ranges.size(), &out);
  SeriesId end = 0;
  for (const auto& [first, count] : record.ranges) {
    PutVarint(ZigZag(static_cast<int64_t>(first - end)), &out);
    PutVarint(count, &out);
    end = first + count;
  }
  return out;
}

std::optional<LayoutRecord> DecodeLayoutRecord(absl::string_view bytes) {
  ByteReader in(bytes);
  LayoutRecord record;
  const auto attempt = Read32(&in);
  const uint8_t has_steps = in.Byte();
  const uint64_t ranges = in.Varint();
  if (!attempt || has_steps > 1 || ranges == 0 || ranges > bytes.size()) return std::nullopt;
  record.attempt = *attempt;
  record.has_steps = has_steps == 1;
  uint64_t columns = 0;
  SeriesId end = 0;
  for (uint64_t i = 0; i < ranges; ++i) {
    const SeriesId first = end + static_cast<uint64_t>(UnZigZag(in.Varint()));
    const uint64_t count = in.Varint();
    if (count == 0 || count > kMaxLayoutColumns || (columns += count) > kMaxLayoutColumns)
      return std::nullopt;
    end = first + count;
    if (first == 0 || end < first) return std::nullopt;
    record.ranges.emplace_back(first, count);
  }
  if (!in.AtEnd()) return std::nullopt;
  return record;
}

absl::Status LoadCatalog(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* index, JobCatalog* catalog) {
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions(), index));
  // A record may only refer to what was read before it.
  const std::pair<char, bool (*)(ByteReader, absl::string_view, JobCatalog*)> kinds[] = {
      {'M', LoadMetric}, {'S', LoadSeries}, {'L', LoadLayout}};
  for (const auto& [kind, load] : kinds) {
    const std::string prefix = JobPrefix(kind, catalog->id());
    for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
      const absl::string_view key = View(it->key());
      if (!load(ByteReader(key.substr(prefix.size())), View(it->value()), catalog)) {
        return DamagedRecord(key);
      }
    }
    TACHO_RETURN_IF_ERROR(FromRocksDb(it->status(), "read the series index"));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CountColumns(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* index,
                                      JobId job, LayoutId layout) {
  const std::string key = LayoutKey(job, layout);
  std::string bytes;
  const rocksdb::Status status = db->Get(rocksdb::ReadOptions(), index, key, &bytes);
  if (status.IsNotFound()) return absl::NotFoundError("no such layout");
  if (!status.ok()) return FromRocksDb(status, "read the series index");
  const auto record = DecodeLayoutRecord(bytes);
  if (!record) return DamagedRecord(key);
  return record->columns();
}

absl::StatusOr<uint64_t> CountMetrics(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* index,
                                      JobId job) {
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions(), index));
  const std::string prefix = JobPrefix('M', job);
  it->SeekForPrev(PrefixEnd(prefix));
  if (it->Valid() && it->key().starts_with(prefix)) {
    // Ids count from 1, without gaps.
    return uint64_t{ByteReader(View(it->key()).substr(prefix.size())).Be32()};
  }
  TACHO_RETURN_IF_ERROR(FromRocksDb(it->status(), "read the series index"));
  return 0;
}

absl::StatusOr<uint64_t> CountSeries(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* index,
                                     JobId job) {
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions(), index));
  const std::string prefix = JobPrefix('S', job);
  it->SeekForPrev(SeriesKey(job, UINT64_MAX));
  if (!it->Valid()) {
    TACHO_RETURN_IF_ERROR(FromRocksDb(it->status(), "read the series index"));
    return 0;
  }
  if (!it->key().starts_with(prefix)) return 0;
  const auto record = DecodeSeriesRecord(View(it->value()));
  if (!record) return DamagedRecord(View(it->key()));
  return record->series_before + record->series.size();
}

}  // namespace tacho::storage
