// Compares what was sent with what the store shows. The columns of a layout are followed together,
// so that a sample costs a look at a vector.
#include "server/forward/series_ends.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "proto/base/task_end.h"

namespace tacho::server::forward {
namespace {

constexpr int64_t kMarkerAfterNs = 1'000'000;
// Agents go on for a while after the end of a task.
constexpr absl::Duration kRowsAfterEnd = absl::Minutes(1);
// Events may come so much later than their time. Ends that come later count by the silence.
constexpr absl::Duration kLateEvents = absl::Minutes(10);

std::string TaskKey(const std::optional<uint32_t>& task, const std::string& host, uint32_t attempt,
                    const std::string& job) {
  return absl::StrCat(task ? absl::StrCat(*task) : "-", " ", attempt, " ", host.size(), " ", host,
                      job);
}

}  // namespace

void SeriesEnds::Sent(const storage::LayoutPtr& layout, size_t column, const SeriesTextPtr& text,
                      int64_t time_ns) {
  if (last_ == nullptr || last_id_ != layout->id) {
    auto found = layouts_.find(layout->id);
    if (found == layouts_.end()) {
      if (columns_ + layout->series.size() > kMaxColumns) return;
      columns_ += layout->series.size();
      const storage::SeriesSource& source = *layout->series.front()->source;
      Followed followed = {source.job, source.task, source.host, layout->attempt, {}};
      for (const storage::Series* series : layout->series) {
        followed.columns.emplace_back().series = series->id;
      }
      // Others move when the table grows.
      found = layouts_.emplace(layout->id, std::move(followed)).first;
    }
    last_id_ = layout->id;
    last_ = &found->second;
  }
  Column& one = last_->columns[column];
  one.text = text;
  one.sent_ns = std::max(one.sent_ns, time_ns);
}

void SeriesEnds::Begin(const storage::Store& store, SeriesTexts* texts) {
  struct Shown {
    storage::LayoutPtr layout;
    std::vector<int64_t> times;  // By column; kNothing: there is no value.
  };
  std::vector<Shown> all;
  size_t columns = 0;
  store.VisitLatestRows([&](const storage::LatestRow& row) {
    columns += row.values.size();
    if (columns > kMaxColumns) return;
    Shown& shown = all.emplace_back();
    shown.layout = row.layout;
    for (size_t i = 0; i < row.values.size(); ++i) {
      shown.times.push_back(IsStaleMarker(row.values[i]) ? kNothing : row.Time(i));
    }
  });
  for (const Shown& shown : all) {
    const auto& wanted = texts->Of(shown.layout);
    for (size_t i = 0; i < shown.times.size(); ++i) {
      if (shown.times[i] == kNothing || wanted[i] == nullptr) continue;
      Sent(shown.layout, i, wanted[i], shown.times[i]);
    }
  }
}

void SeriesEnds::MarkLive(const storage::LatestRow& row, absl::Time oldest) {
  const auto found = layouts_.find(row.layout->id);
  if (found == layouts_.end()) return;
  std::vector<Column>& columns = found->second.columns;
  for (size_t i = 0; i < std::min(columns.size(), row.values.size()); ++i) {
    if (columns[i].sent_ns == kNothing || IsStaleMarker(row.values[i])) continue;
    columns[i].live = row.Received(i) >= oldest;
    columns[i].waits = row.Time(i) > columns[i].sent_ns;
  }
}

SeriesEnds::Tasks SeriesEnds::EndedTasks(const storage::Store& store, absl::Time now) {
  std::set<std::string> jobs;
  for (const auto& [id, layout] : layouts_) {
    if (layout.task) jobs.insert(layout.job);
  }
  const int64_t from = absl::ToUnixNanos(looked_.value_or(now) - kLateEvents);
  looked_ = now;
  Tasks ended;
  for (const std::string& job : jobs) {
    const auto take = [&ended, &job](const storage::Event& event) {
      if (!IsEndKind(event.kind)) return true;
      const auto key = TaskKey(event.source.task, event.source.host, event.source.attempt, job);
      const auto [place, fresh] = ended.try_emplace(key, event.time_ns);
      if (!fresh) place->second = std::max(place->second, event.time_ns);
      return true;
    };
    // What cannot be read now counts by the silence.
    store.VisitEvents(job, from, INT64_MAX, storage::Store::EventOrder::kOldestFirst, take)
        .IgnoreError();
  }
  return ended;
}

void SeriesEnds::ForgetLayouts() {
  last_ = nullptr;
  for (auto layout = layouts_.begin(); layout != layouts_.end();) {
    const auto& columns = layout->second.columns;
    if (std::any_of(columns.begin(), columns.end(),
                    [](const Column& column) { return column.sent_ns != kNothing; })) {
      ++layout;
      continue;
    }
    columns_ -= columns.size();
    layouts_.erase(layout++);
  }
}

std::vector<SeriesEnds::End> SeriesEnds::Find(const storage::Store& store, absl::Time now,
                                              absl::Duration staleness) {
  for (auto& [id, layout] : layouts_) {
    for (Column& column : layout.columns) column.live = column.waits = false;
  }
  store.VisitLatestRows(
      [this, oldest = now - staleness](const storage::LatestRow& row) { MarkLive(row, oldest); });
  // The newest attempt that has values, by series.
  absl::flat_hash_map<storage::SeriesId, uint32_t> newest;
  for (const auto& [id, layout] : layouts_) {
    for (const Column& column : layout.columns) {
      if (!column.live) continue;
      uint32_t& attempt = newest.try_emplace(column.series, layout.attempt).first->second;
      attempt = std::max(attempt, layout.attempt);
    }
  }
  const Tasks ended = EndedTasks(store, now);
  // A series may have ended in several layouts.
  absl::flat_hash_map<std::pair<storage::SeriesId, uint32_t>, End> ends;
  for (auto& [id, layout] : layouts_) {
    const auto task =
        layout.task ? ended.find(TaskKey(layout.task, layout.host, layout.attempt, layout.job))
                    : ended.end();
    for (Column& column : layout.columns) {
      if (column.sent_ns == kNothing) continue;
      const bool silent = std::exchange(column.before_ns, column.sent_ns) == column.sent_ns;
      const auto shown = newest.find(column.series);
      const bool replaced = shown != newest.end() && shown->second > layout.attempt;
      const bool task_ended =
          task != ended.end() && silent &&
          task->second >= column.sent_ns - absl::ToInt64Nanoseconds(kRowsAfterEnd);
      if (column.waits || (column.live && !replaced && !task_ended)) continue;
      // Another layout of the attempt goes on with it.
      const bool goes_on = !column.live && shown != newest.end() && !replaced;
      if (!goes_on) {
        End& end = ends[{column.series, layout.attempt}];
        end.time_ns = std::max(end.time_ns, column.sent_ns + kMarkerAfterNs);
        end.text = column.text;
      }
      column.sent_ns = column.before_ns = kNothing;
      column.text = nullptr;
    }
  }
  ForgetLayouts();
  std::vector<End> found;
  found.reserve(ends.size());
  for (auto& [key, end] : ends) found.push_back(std::move(end));
  return found;
}

}  // namespace tacho::server::forward
