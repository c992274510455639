// A layout on its way from an agent to the store, and the rows that fit it:
//
//   v1::Layout -> AdmittedLayout (rules on texts) -> Store::RegisterLayout() (limits)
//              -> StreamLayout
//   v1::Batch  -> RowSelection (what of it may be stored) -> Store::AppendRows()
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/edge/token_bucket.h"
#include "storage/model/series.h"
#include "storage/store.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::ingest {

// Labels of one series, whatever limits.labels_per_series says.
inline constexpr int kMaxLabels = 64;

// A layout after its texts have been checked: the series that keep the rules on names, labels and
// texts (proto/tacho/v1/types.proto), and what is wrong with the others.
struct AdmittedLayout {
  uint32_t width = 0;                    // Columns as the agent sends them.
  storage::LayoutDefinition definition;  // The columns that keep the rules.
  // Where each of those stands in what the agent sends; empty if all keep the rules.
  std::vector<uint32_t> columns;

  // Columns that do not, and the first of them.
  uint32_t invalid = 0;
  std::string invalid_example;  // As metric{labels}.
  std::string invalid_problem;  // "layout.series[3].labels.chip: must not be empty".

  // The next column; in ascending order.
  void Add(uint32_t column, const v1::Layout::Series& untrusted);
};

// A layout as the agent defined it, and the part of it that is stored.
struct StreamLayout {
  // The layout that is stored; 0 if a limit refused every series. A stream may last for months: it
  // must not keep jobs in memory that ended long ago, so the layout is looked up again when it has
  // left.
  storage::LayoutId id = 0;
  storage::JobId job = 0;
  std::weak_ptr<const storage::Layout> layout;
  uint32_t width = 0;  // Columns as the agent sends them.
  bool has_steps = false;
  bool whole = true;              // Every column is stored as it is, and the two below are empty.
  std::vector<uint32_t> columns;  // Columns sent that are stored as they are, ascending.
  std::vector<std::vector<uint32_t>> folded;  // Those added up; each makes a column behind them.
  std::string first_series;                   // As metric{labels}, to name in an ack.
  std::string job_name;
  std::shared_ptr<edge::TokenBucket> job_bucket;

  // Series that one limit concerns.
  struct Concerned {
    storage::Limit limit = storage::Limit::kNames;
    storage::LimitAction action = storage::LimitAction::kReject;
    std::string name;  // The metric's or label's; empty if the limit is about neither.
    uint32_t series = 0;
    std::string example;  // As metric{labels}.
    std::string detail;   // The limit, and how to get below it.
  };
  // One for each limit, action and name; past kMaxNamed in all, one for all other names of a limit.
  std::vector<Concerned> concerned;
  static constexpr size_t kMaxNamed = 50;
  uint32_t refused = 0;  // Columns of which nothing is stored.

  // Columns that are stored, each by itself or in a sum.
  uint32_t stored_width() const { return width - refused; }

  static StreamLayout Of(const AdmittedLayout& admitted, storage::Registration registration);

 private:
  void Concern(const AdmittedLayout& admitted, const storage::Registration& registration,
               const storage::Breach& breach);
};

// Times that may be stored, both ends included; ns since the Unix epoch.
struct TimeWindow {
  int64_t oldest_ns = 0;
  int64_t newest_ns = 0;
};

// The part of a batch that is stored. Points into the batch where everything of it is, else into
// copies of its own, which are used again by the next Select(). Not thread-safe.
class RowSelection {
 public:
  // `rows` must have the shape of `layout` as sent, and outlive this selection's use.
  void Select(const storage::RowsView& rows, const StreamLayout& layout, const TimeWindow& window);

  const storage::RowsView& rows() const { return selected_; }
  uint64_t future_rows() const { return future_rows_; }
  uint64_t old_rows() const { return old_rows_; }

 private:
  void CopyRow(const storage::RowsView& rows, const StreamLayout& layout, size_t row);
  // The sum of some columns, stale markers left out; the stale marker if nothing else is there.
  static double SumOf(std::span<const double> values, const std::vector<uint32_t>& columns);

  storage::RowsView selected_;
  uint64_t future_rows_ = 0;
  uint64_t old_rows_ = 0;
  std::vector<int64_t> times_;
  std::vector<int64_t> steps_;
  std::vector<double> values_;
};

}  // namespace tacho::server::ingest
