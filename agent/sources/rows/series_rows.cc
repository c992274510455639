// Keeps the columns of one layout. A row costs one look-up a series; a layout is made only when a
// series is new or leaves.
#include "agent/sources/rows/series_rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

v1::Source SourceOf(const std::string& job, const std::string& host) {
  v1::Source source;
  source.set_job(job);
  source.set_host(host);
  return source;
}

}  // namespace

bool LayoutBudget::Take(absl::Time now) {
  if (left_ < kAtOnce && now >= refilled_ + kOneMoreEvery) {
    const int more = static_cast<int>((now - refilled_) / kOneMoreEvery);
    left_ = std::min(kAtOnce, left_ + more);
    refilled_ = now;
  }
  if (left_ == kAtOnce || now < refilled_) refilled_ = now;  // The latter: the clock was set.
  if (left_ == 0) return false;
  --left_;
  return true;
}

SeriesRows::SeriesRows(const std::string& job, const std::string& host, Leaves leaves)
    : SeriesRows(SourceOf(job, host), leaves) {}

SeriesRows::Column* SeriesRows::Find(const std::string& key) {
  if (const auto known = by_key_.find(key); known != by_key_.end()) {
    TACHO_CHECK(known->second < columns_.size());
    return &columns_[known->second];
  }
  const auto fresh = fresh_at_.find(key);
  return fresh == fresh_at_.end() ? nullptr : &fresh_[fresh->second];
}

void SeriesRows::AddNew(v1::Layout::Series series, const std::string& key, double value) {
  fresh_at_[key] = fresh_.size();
  fresh_.push_back({.series = std::move(series), .key = key, .value = value, .present = true});
}

void SeriesRows::Add(const v1::Layout::Series& series, double value) {
  const std::string key = KeyOf(series);
  Column* const column = Find(key);
  if (column == nullptr) return AddNew(series, key, value);
  column->value = value;
  column->present = true;
}

absl::Status SeriesRows::Write(absl::Time now, const Sample& sample, LayoutBudget* budget,
                               RowSink* sink, uint64_t* left_out) {
  for (const Sample::Entry& entry : sample.entries()) {
    Column* const column = Find(entry.key);
    if (column == nullptr) {
      AddNew(SeriesOf(*entry.metric, entry.labels), entry.key, entry.value);
      continue;
    }
    column->value = entry.value;
    column->present = true;
  }
  return Write(now, budget, sink, left_out);
}

absl::Status SeriesRows::Write(absl::Time now, const Sample& sample, RowSink* sink) {
  uint64_t none = 0;
  return Write(now, sample, nullptr, sink, &none);
}

absl::Status SeriesRows::Write(absl::Time now, LayoutBudget* budget, RowSink* sink,
                               uint64_t* left_out) {
  TACHO_RETURN_IF_ERROR(Rearrange(now, budget, sink, left_out));
  silent_ = std::none_of(columns_.begin(), columns_.end(),
                         [](const Column& c) { return c.present || c.live; });
  if (silent_) return absl::OkStatus();
  std::vector<double> values;
  values.reserve(columns_.size());
  for (const Column& column : columns_) {
    values.push_back(column.present ? column.value : StaleMarker());
  }
  const int64_t time_ns = absl::ToUnixNanos(now);
  absl::Status status = sink->AppendRows(layout_, {&time_ns, 1}, {}, values, {});
  for (Column& column : columns_) {
    if (column.present) column.last = now;
    // A refused row ends no series.
    column.live = column.present || (column.live && !status.ok());
    column.present = false;
  }
  return status;
}

absl::Status SeriesRows::Rearrange(absl::Time now, LayoutBudget* budget, RowSink* sink,
                                   uint64_t* left_out) {
  std::vector<Column> fresh = std::exchange(fresh_, {});
  fresh_at_.clear();
  if (!fresh.empty() && budget != nullptr && !budget->Take(now)) {
    *left_out += fresh.size();
    fresh.clear();
  }
  const bool any_present = !fresh.empty() || std::any_of(columns_.begin(), columns_.end(),
                                                         [](const Column& c) { return c.present; });
  const bool shrinks =
      leaves_ == Leaves::kAtOnce && any_present &&
      std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.present; });
  if (fresh.empty() && !shrinks) return absl::OkStatus();
  std::erase_if(columns_, [&](const Column& c) { return IsToLeave(c, now); });
  columns_.insert(columns_.end(), std::make_move_iterator(fresh.begin()),
                  std::make_move_iterator(fresh.end()));
  by_key_.clear();
  for (size_t i = 0; i < columns_.size(); ++i) by_key_[columns_[i].key] = i;
  TACHO_CHECK(by_key_.size() == columns_.size());
  return DefineLayout(sink);
}

bool SeriesRows::IsToLeave(const Column& column, absl::Time now) const {
  if (column.present) return false;
  switch (leaves_) {
    case Leaves::kNextLayout:
      return !column.live;
    case Leaves::kLate:
      return !column.live && now - column.last > kForget;
    case Leaves::kAtOnce:
      return true;
  }
  return true;
}

absl::Status SeriesRows::DefineLayout(RowSink* sink) {
  v1::Layout layout;
  *layout.mutable_source() = source_;
  for (const Column& column : columns_) *layout.add_series() = column.series;
  const absl::StatusOr<uint32_t> id = sink->DefineLayout(layout);
  if (!id.ok()) {
    // layout_ does not match columns_ any more: every series is new again.
    columns_.clear();
    by_key_.clear();
    return id.status();
  }
  layout_ = *id;
  return absl::OkStatus();
}

}  // namespace tacho::agent
