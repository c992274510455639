// The newest values of layouts and series.
#pragma once

#include <cstdint>
#include <span>

#include "absl/time/time.h"
#include "storage/model/series.h"

namespace tacho::storage {

// What a layout has shown last since Open() (or in the journal that was found then). Its series
// need not share a row: one that is recorded every hundredth step has its newest value here all the
// same.
struct LatestRow {
  LayoutPtr layout;
  // Of the newest row.
  int64_t time_ns = 0;
  int64_t step = kNoStep;
  absl::Time received;  // By StoreOptions::now, when the row was appended or recovered.
  // One a column: its newest value; the stale marker if no row has had one.
  std::span<const double> values;

  // The row that a column's newest value is from.
  struct Stamp {
    int64_t time_ns = 0;
    absl::Time received;
  };
  // Empty if all values are from the newest row; else for each column an index into `stamps`.
  std::span<const Stamp> stamps;
  std::span<const uint32_t> stamp_of;

  int64_t Time(size_t column) const {
    return stamp_of.empty() ? time_ns : stamps[stamp_of[column]].time_ns;
  }
  absl::Time Received(size_t column) const {
    return stamp_of.empty() ? received : stamps[stamp_of[column]].received;
  }
};

struct LatestSample {
  SeriesPtr series;
  int64_t time_ns = 0;
  int64_t step = kNoStep;
  uint32_t attempt = 0;
  double value = 0;
};

class Chunk;
// The last sample of a chunk, which has one.
LatestSample LastOf(const SeriesPtr& series, const Chunk& chunk);

}  // namespace tacho::storage
