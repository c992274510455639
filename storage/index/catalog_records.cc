#include "storage/index/catalog_records.h"

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
#include "storage/index/index_records.h"

namespace tacho::storage {
namespace {

absl::Status Damaged(absl::string_view key) {
  return absl::DataLossError(absl::StrCat("the record of the series index under ",
                                          absl::BytesToHexString(key), " is damaged"));
}

// Each returns false if the record under the key, of which `id` is left to read, is damaged.

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
  for (const Series* series : layout.series) {
    if (series->source != layout.series.front()->source) return false;
  }
  catalog->AddLayout(std::move(layout));
  return true;
}

}  // namespace

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
        return Damaged(key);
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
  if (!record) return Damaged(key);
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
  if (!record) return Damaged(View(it->key()));
  return record->series_before + record->series.size();
}

}  // namespace tacho::storage
