#include "storage/columns/latest_of_headers.h"

#include "proto/base/status_macros.h"
#include "storage/codec/keys.h"
#include "storage/columns/column_cache.h"

namespace tacho::storage {
namespace {

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
  StoredView::MetBytes met;
  const auto columns = view->FindColumns(*partition, *series, {.begin_ns = INT64_MAX}, &met);
  if (!columns.ok()) return columns.status();
  const ColumnInfo* last = nullptr;
  bool tied = false;  // Another ends at the same time.
  for (const ColumnInfo& column : (*columns)->columns()) {
    if (last != nullptr && column.last_time_ns < last->last_time_ns) continue;
    tied = last != nullptr && column.last_time_ns == last->last_time_ns;
    last = &column;
  }
  if (last == nullptr || tied || last->stats.count != last->rows) return latest;
  TACHO_ASSIGN_OR_RETURN(const auto ends, view->FindTimeColumnEnds(*partition, *series, *last));
  latest = LatestSample{series, last->last_time_ns, ends.last_step, ends.attempt, last->stats.last};
  return latest;
}

}  // namespace tacho::storage
