#include "storage/head/latest_values.h"

#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/stale_marker.h"

namespace tacho::storage {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

uint64_t BitsAt(const RowsEntry& entry, size_t row, size_t column) {
  uint64_t bits = 0;
  std::memcpy(&bits, entry.values.data() + (row * entry.columns + column) * sizeof(bits),
              sizeof(bits));
  return bits;
}

bool HasEveryValue(const RowsEntry& entry, size_t row) {
  const char* const values = entry.values.data() + row * entry.columns * sizeof(double);
  return CountValues(values, entry.columns) == entry.columns;
}

}  // namespace

void LatestValues::Include(const RowsEntry& entry, absl::Time received) {
  TACHO_CHECK(empty() || values_.size() == entry.columns);
  std::optional<size_t> newest;
  int64_t newest_time = newest_.time_ns;
  for (size_t row = 0; row < entry.rows; ++row) {
    if (entry.Time(row) < newest_time) continue;
    newest_time = entry.Time(row);
    newest = row;
  }
  if (!newest) return;
  if (HasEveryValue(entry, *newest)) {
    stamps_ = {};
    stamp_of_ = {};
    values_.resize(entry.columns);
    std::memcpy(values_.data(), entry.values.data() + *newest * entry.columns * sizeof(double),
                entry.columns * sizeof(double));
  } else {
    IncludeSparse(entry, *newest, received);
  }
  newest_ = {newest_time, received};
  step_ = entry.Step(*newest);
}

void LatestValues::IncludeSparse(const RowsEntry& entry, size_t newest, absl::Time received) {
  if (stamp_of_.empty()) {
    stamps_.assign(1, newest_);
    stamp_of_.assign(entry.columns, 0);
    values_.resize(entry.columns, StaleMarker());
  }
  std::vector<uint32_t> stamp_of_row(newest + 1, kNone);
  for (size_t column = 0; column < entry.columns; ++column) {
    // Most columns have a value in the newest row; for the others the rows before are searched.
    for (size_t row = newest + 1; row-- > 0;) {
      const uint64_t bits = BitsAt(entry, row, column);
      const int64_t time = entry.Time(row);
      if (bits == kStaleMarkerBits || time < stamps_[stamp_of_[column]].time_ns) continue;
      if (stamp_of_row[row] == kNone) {
        stamp_of_row[row] = static_cast<uint32_t>(stamps_.size());
        stamps_.push_back({time, received});
      }
      stamp_of_[column] = stamp_of_row[row];
      values_[column] = std::bit_cast<double>(bits);
      break;
    }
  }
  if (stamps_.size() > 2 * entry.columns + entry.rows) DropUnusedStamps();
}

void LatestValues::End(size_t column, int64_t time_ns) {
  if (empty()) return;
  TACHO_CHECK(column < values_.size());
  const int64_t time = stamp_of_.empty() ? newest_.time_ns : stamps_[stamp_of_[column]].time_ns;
  if (time <= time_ns) values_[column] = StaleMarker();
}

void LatestValues::DropUnusedStamps() {
  std::vector<uint32_t> kept_as(stamps_.size(), kNone);
  std::vector<LatestRow::Stamp> kept;
  for (uint32_t& stamp : stamp_of_) {
    if (kept_as[stamp] == kNone) {
      kept_as[stamp] = static_cast<uint32_t>(kept.size());
      kept.push_back(stamps_[stamp]);
    }
    stamp = kept_as[stamp];
  }
  stamps_ = std::move(kept);
}

LatestValues::Newest LatestValues::NewestRow(size_t column) const {
  Newest newest{newest_.time_ns, step_, StaleMarker()};
  if (empty()) return newest;
  TACHO_CHECK(column < values_.size() && (stamp_of_.empty() || column < stamp_of_.size()));
  // A stamp of that time may be of an earlier row of the same time, which does as well.
  if (stamp_of_.empty() || stamps_[stamp_of_[column]].time_ns == newest_.time_ns) {
    newest.value = values_[column];
  }
  return newest;
}

LatestRow LatestValues::View(const LayoutPtr& layout) const {
  return {.layout = layout,
          .time_ns = newest_.time_ns,
          .step = step_,
          .received = newest_.received,
          .values = values_,
          .stamps = stamps_,
          .stamp_of = stamp_of_};
}

}  // namespace tacho::storage
