#include "storage/latest_of_headers.h"

#include <memory>
#include <string>
#include <utility>

#include "rocksdb/iterator.h"
#include "storage/frame.h"
#include "storage/keys.h"
#include "storage/rocksdb_status.h"

namespace tacho::storage {
namespace {

// The column that ends last, as far as headers are concerned.
struct LastColumn {
  ValueColumnKey key;
  LayoutId layout = 0;
  uint32_t rows = 0;
  int64_t last_time_ns = INT64_MIN;
  ColumnStats stats;
  bool tied = false;  // Another ends at the same time.
};

absl::StatusOr<std::optional<LastColumn>> FindLastColumn(rocksdb::Iterator* it,
                                                         const std::string& prefix) {
  std::optional<LastColumn> best;
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    const auto key = ValueColumnKey::Decode(View(it->key()));
    if (!key) return absl::DataLossError("a column key is damaged: " + it->key().ToString(true));
    const auto header = DecodeValueColumnHeader(key->first_time_ns, View(it->value()));
    if (!header.ok()) return header.status();
    if (best && header->last_time_ns < best->last_time_ns) continue;
    const bool tied = best && header->last_time_ns == best->last_time_ns;
    best =
        LastColumn{*key, header->layout, header->rows, header->last_time_ns, header->stats, tied};
  }
  if (!it->status().ok()) return FromRocksDb(it->status(), "read columns");
  return best;
}

// The partition of a time's day; nullopt if there is none.
std::optional<size_t> PartitionOf(const StoredView& view, int64_t time_ns) {
  const auto& partitions = view.partitions();
  for (size_t i = partitions.size(); i > 0; --i) {
    if (partitions[i - 1]->day() == DayOf(time_ns)) return i - 1;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::optional<LatestSample>> LatestOfHeaders(StoredView* view,
                                                            const SeriesPtr& series,
                                                            int64_t newest_ns) {
  std::optional<LatestSample> latest;
  const auto partition = PartitionOf(*view, newest_ns);
  if (!partition || !view->FindOpenRows(*series).empty()) return latest;
  std::unique_ptr<rocksdb::Iterator> it = view->BorrowIterator(*partition);
  const auto found = FindLastColumn(it.get(), ValueColumnKey::SeriesPrefix(*series));
  view->ReturnIterator(*partition, std::move(it));
  if (!found.ok()) return found.status();
  if (!*found || (*found)->tied || (*found)->stats.count != (*found)->rows) return latest;
  const LastColumn& last = **found;
  const auto ends = view->FindTimeColumnEnds(*partition, last.layout, last.key);
  if (!ends.ok()) return ends.status();
  latest = LatestSample{series, last.last_time_ns, ends->last_step, ends->attempt, last.stats.last};
  return latest;
}

}  // namespace tacho::storage
