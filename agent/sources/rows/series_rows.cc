#include "agent/sources/rows/series_rows.h"

#include <algorithm>
#include <utility>

#include "agent/sources/rows/host_sample.h"
#include "proto/base/stale_marker.h"

namespace tacho::agent {
namespace {

// Of name and labels; type, unit and help tell no series apart.
std::string NameOf(const v1::Layout::Series& series) {
  std::string name = series.metric().name();
  for (const v1::Label& label : series.labels()) {
    name.push_back('\0');
    name += label.name();
    name.push_back('\0');
    name += label.value();
  }
  return name;
}

}  // namespace

void SeriesRows::Add(const v1::Layout::Series& series, double value) {
  const std::string name = NameOf(series);
  Column* column = nullptr;
  if (const auto known = by_name_.find(name); known != by_name_.end()) {
    column = &columns_[known->second];
  } else {
    const auto [fresh, is_new] = fresh_name_.try_emplace(name, fresh_.size());
    if (is_new) fresh_.push_back({.series = series});
    column = &fresh_[fresh->second];
  }
  column->value = value;
  column->present = true;
}

absl::Status SeriesRows::Write(absl::Time now, LayoutBudget* budget, RowSink* sink,
                               uint64_t* left_out) {
  if (!fresh_.empty()) {
    if (budget->Take(now)) {
      ForgetEnded();
      columns_.insert(columns_.end(), std::make_move_iterator(fresh_.begin()),
                      std::make_move_iterator(fresh_.end()));
      by_name_.clear();
      for (size_t i = 0; i < columns_.size(); ++i) by_name_[NameOf(columns_[i].series)] = i;
      if (absl::Status status = DefineLayout(sink); !status.ok()) return status;
    } else {
      *left_out += fresh_.size();
    }
    fresh_.clear();
    fresh_name_.clear();
  }
  const bool says = std::any_of(columns_.begin(), columns_.end(),
                                [](const Column& c) { return c.present || c.live; });
  silent_ = !says;
  if (!says) return absl::OkStatus();
  std::vector<double> values;
  values.reserve(columns_.size());
  for (const Column& column : columns_) {
    values.push_back(column.present ? column.value : StaleMarker());
  }
  const int64_t time_ns = absl::ToUnixNanos(now);
  absl::Status status = sink->AppendRows(layout_, {&time_ns, 1}, {}, values, {});
  for (Column& column : columns_) {
    // Of a row that was refused nothing is known to have ended.
    column.live = column.present || (column.live && !status.ok());
    column.present = false;
  }
  return status;
}

void SeriesRows::ForgetEnded() {
  std::erase_if(columns_, [](const Column& c) { return !c.present && !c.live; });
}

absl::Status SeriesRows::DefineLayout(RowSink* sink) {
  v1::Layout layout;
  *layout.mutable_source() = source_;
  for (const Column& column : columns_) *layout.add_series() = column.series;
  const absl::StatusOr<uint32_t> id = sink->DefineLayout(layout);
  if (!id.ok()) {
    // Of another layout than columns_: all of it is new again.
    columns_.clear();
    by_name_.clear();
    return id.status();
  }
  layout_ = *id;
  return absl::OkStatus();
}

}  // namespace tacho::agent
