// Makes rows of series that come and go, in few layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/layout_budget.h"
#include "agent/sources/rows/source.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// Rows without steps of one v1::Source. A series that was in the last row and is not in this one
// has a stale marker there, so that readers see it end. While series only go missing or come back
// the layout stays; new ones make another, of all that are there or just ended. One thread.
class SeriesRows {
 public:
  explicit SeriesRows(v1::Source source) : source_(std::move(source)) {}

  // A value of the row in the making. The same series again replaces its value.
  void Add(const v1::Layout::Series& series, double value);
  // Appends the row, unless it says nothing, and begins the next. Series that are new while the
  // budget is used up are left out: *left_out counts them.
  absl::Status Write(absl::Time now, LayoutBudget* budget, RowSink* sink, uint64_t* left_out);

  size_t series() const { return columns_.size(); }
  // Nothing in the last row, nor in the one before.
  bool silent() const { return silent_; }

 private:
  struct Column {
    v1::Layout::Series series;
    double value = 0;
    bool present = false;  // In the row in the making.
    bool live = false;     // In the last row.
  };

  absl::Status DefineLayout(RowSink* sink);
  void ForgetEnded();

  const v1::Source source_;
  std::vector<Column> columns_;
  std::vector<Column> fresh_;                            // In no layout yet.
  absl::flat_hash_map<std::string, size_t> by_name_;     // Encoded series to columns_.
  absl::flat_hash_map<std::string, size_t> fresh_name_;  // To fresh_.
  uint32_t layout_ = 0;
  bool silent_ = true;
};

}  // namespace tacho::agent
