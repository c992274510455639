// The way from a commit to the messages of a watch.
//
//   storage::Change -> WantedColumns -> WatchedRows -> WatchBacklog -> v1::WatchResponse
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/query/read/selection.h"
#include "storage/change_feed.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr uint64_t kDefaultWatchedSeries = 10'000;

struct WatchPlan {
  Selection selection;
  std::optional<int64_t> begin_ns;  // History from there on; nullopt: none.
  bool events = false;
  uint64_t max_series = kDefaultWatchedSeries;
};

// `max_series` is what the collector's configuration allows.
//   INVALID_ARGUMENT  the text names the field.
absl::StatusOr<WatchPlan> MakeWatchPlan(const v1::WatchRequest& request, uint64_t max_series);

// RESOURCE_EXHAUSTED: more series match than the plan allows.
absl::Status TooManyWatched(const WatchPlan& plan);

// The columns that a selection wants of each layout of the job. One thread at a time.
class WantedColumns {
 public:
  using Columns = std::shared_ptr<const std::vector<uint32_t>>;

  explicit WantedColumns(Selection selection) : selection_(std::move(selection)) {}

  // Ascending; perhaps none. Decided once a layout.
  Columns Of(const storage::Layout& layout);

 private:
  Columns Decide(const storage::Layout& layout) const;

  const Selection selection_;
  absl::flat_hash_map<storage::LayoutId, Columns> known_;
};

// Some rows with the wanted columns only, or an event.
struct WatchedRows {
  storage::LayoutPtr layout;
  WantedColumns::Columns columns;
  std::vector<int64_t> times;
  std::vector<int64_t> steps;
  std::vector<double> values;  // Column by column.
  std::shared_ptr<const storage::Event> event;

  uint64_t bytes() const;
};
// `columns` are not empty.
WatchedRows SelectRows(const storage::Change& change, WantedColumns::Columns columns);

// Numbers the series of a watch in the order in which they are sent. One thread at a time.
class SeriesNumbers {
 public:
  struct Number {
    uint32_t index = 0;
    bool is_new = false;
  };
  Number Of(storage::SeriesId series);
  size_t size() const { return numbers_.size(); }

 private:
  absl::flat_hash_map<storage::SeriesId, uint32_t> numbers_;
};

void FillSeries(const storage::Series& series, uint32_t index, v1::WatchResponse* response);

// Rows and events that wait to be sent, in the order in which they were added. One thread at a
// time.
class WatchBacklog {
 public:
  explicit WatchBacklog(uint64_t max_series) : max_series_(max_series) {}

  // The series that history has sent. Call before the first Next().
  void SetNumbers(SeriesNumbers numbers) { numbers_ = std::move(numbers); }
  void Add(WatchedRows rows);
  uint64_t bytes() const { return bytes_; }

  // Replaces *response with the next message; false if there is none.
  //   RESOURCE_EXHAUSTED  there is one series more than the watch may have.
  absl::StatusOr<bool> Next(v1::WatchResponse* response);
  // Samples in the messages so far.
  uint64_t samples() const { return samples_; }

 private:
  // Fills *response with the next part of the first rows; false if nothing is left of them.
  absl::StatusOr<bool> NextOfFirst(v1::WatchResponse* response);

  const uint64_t max_series_;
  SeriesNumbers numbers_;
  std::deque<WatchedRows> rows_;
  uint64_t bytes_ = 0;
  uint64_t samples_ = 0;
  // Where the first rows go on; all before has been sent.
  size_t column_ = 0;
  size_t row_ = 0;
  bool event_sent_ = false;  // The first is an event, and has been sent.
};

}  // namespace tacho::server::query
