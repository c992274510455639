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
#include "agent/sources/rows/sample.h"
#include "agent/sources/rows/source.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// How often a source may define another layout. Each new one is kept by the spool and the collector
// as long as they run: series that change all the time (a label with a time or an id in it) would
// fill both. One thread.
class LayoutBudget {
 public:
  // Pods and processes that come and go change the layout some times a day.
  static constexpr int kAtOnce = 32;
  static constexpr absl::Duration kOneMoreEvery = absl::Minutes(10);

  bool Take(absl::Time now);

 private:
  int left_ = kAtOnce;
  absl::Time refilled_ = absl::InfinitePast();
};

// Rows without steps of one v1::Source: what every source makes that samples. A series that was in
// the last row and is not in this one has a stale marker there, so that readers see it end. While
// series only go missing or come back the layout stays; new ones make another. One thread.
class SeriesRows {
 public:
  // When a series without a value leaves the layout.
  enum class Leaves {
    kNextLayout,  // When the layout next changes.
    kLate,        // Likewise, once it has had no value for kForget: it comes back often.
    kAtOnce,      // With its next row, without a stale marker.
  };
  static constexpr absl::Duration kForget = absl::Minutes(10);

  explicit SeriesRows(v1::Source source, Leaves leaves = Leaves::kNextLayout)
      : source_(std::move(source)), leaves_(leaves) {}
  // Rows about this machine.
  SeriesRows(const std::string& job, const std::string& host, Leaves leaves);

  // A value of the row in the making. The same series again replaces its value.
  void Add(const v1::Layout::Series& series, double value);
  // Appends the row, unless it says nothing, and begins the next. Series that are new while the
  // budget is used up are left out: *left_out counts them. Neither is owned.
  absl::Status Write(absl::Time now, LayoutBudget* budget, RowSink* sink, uint64_t* left_out);

  // A whole row, with as many layouts as it takes.
  absl::Status Write(absl::Time now, const Sample& sample, RowSink* sink);
  // The same within a budget.
  absl::Status Write(absl::Time now, const Sample& sample, LayoutBudget* budget, RowSink* sink,
                     uint64_t* left_out);

  size_t series() const { return columns_.size(); }
  // Nothing in the last row, nor in the one before.
  bool silent() const { return silent_; }

 private:
  struct Column {
    v1::Layout::Series series;
    std::string key;
    double value = 0;
    bool present = false;                    // In the row in the making.
    bool live = false;                       // In the last row.
    absl::Time last = absl::InfinitePast();  // When it had a value.
  };

  // The column of the row in the making, or null: it is new.
  Column* Find(const std::string& key);
  void AddNew(v1::Layout::Series series, const std::string& key, double value);
  // Takes in new series, and lets go of those that leave.
  absl::Status Rearrange(absl::Time now, LayoutBudget* budget, RowSink* sink, uint64_t* left_out);
  bool IsToLeave(const Column& column, absl::Time now) const;
  absl::Status DefineLayout(RowSink* sink);

  const v1::Source source_;
  const Leaves leaves_ = Leaves::kNextLayout;
  std::vector<Column> columns_;
  std::vector<Column> fresh_;                          // In no layout yet.
  absl::flat_hash_map<std::string, size_t> by_key_;    // To columns_.
  absl::flat_hash_map<std::string, size_t> fresh_at_;  // To fresh_.
  uint32_t layout_ = 0;
  bool silent_ = true;
};

}  // namespace tacho::agent
