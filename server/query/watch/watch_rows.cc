// Turns committed rows into messages column by column, because a message holds one series. Which
// columns are wanted is decided once for each layout: rows of a layout come every second.
#include "server/query/watch/watch_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "server/query/range/pieces.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

// Layouts that are remembered: a job that restarts for ever makes ever more.
constexpr size_t kMaxKnownLayouts = 100'000;

// Remembers the answers of one matcher by value. Values of labels are interned, so that equal ones
// of a job lie at one address.
class MatcherMemory {
 public:
  explicit MatcherMemory(const storage::Matcher& matcher) : matcher_(matcher) {}

  bool Matches(const storage::LabelSet& labels) {
    const absl::string_view value = labels.Find(matcher_.label());
    const auto [found, added] = known_.try_emplace(value.data(), false);
    if (added) found->second = matcher_.MatchesValue(value);
    return found->second;
  }

 private:
  const storage::Matcher& matcher_;
  absl::flat_hash_map<const char*, bool> known_;
};

// Samples of a column from row *row on, as many as fit a message. Moves *row past them.
storage::SampleBlock SamplesOf(const WatchedRows& rows, size_t column, size_t* row) {
  const double* const values = rows.values.data() + column * rows.times.size();
  storage::SampleBlock block;
  for (; *row < rows.times.size() && block.size() < kSamplesPerPiece; ++*row) {
    const double value = values[*row];
    if (IsStaleMarker(value)) continue;
    block.times.push_back(rows.times[*row]);
    block.steps.push_back(rows.steps[*row]);
    block.attempts.push_back(rows.layout->attempt);
    block.values.push_back(value);
  }
  return block;
}

}  // namespace

WantedColumns::Columns WantedColumns::Of(const storage::Layout& layout) {
  if (const auto found = known_.find(layout.id); found != known_.end()) return found->second;
  if (known_.size() == kMaxKnownLayouts) known_.clear();
  return known_[layout.id] = Decide(layout);
}

WantedColumns::Columns WantedColumns::Decide(const storage::Layout& layout) const {
  auto columns = std::make_shared<std::vector<uint32_t>>();
  if (!selection_.attempts.Allows(layout.attempt)) return columns;
  const storage::SeriesSource& source = *layout.series.front()->source;
  if (!selection_.part.Has(source.job, source.host)) return columns;
  std::vector<MatcherMemory> on_labels;
  for (const storage::Matcher& matcher : selection_.selector.matchers) {
    if (!matcher.names_source()) {
      on_labels.emplace_back(matcher);
    } else if (!matcher.MatchesSource(source)) {
      return columns;
    }
  }
  const std::vector<std::string>& metrics = selection_.selector.metrics;
  absl::flat_hash_map<const storage::Metric*, bool> wanted_metrics;
  for (uint32_t column = 0; column < layout.series.size(); ++column) {
    const storage::Series& series = *layout.series[column];
    const auto [metric, added] = wanted_metrics.try_emplace(series.metric, metrics.empty());
    if (added && !metrics.empty()) {
      metric->second =
          std::find(metrics.begin(), metrics.end(), series.metric->name) != metrics.end();
    }
    if (!metric->second) continue;
    const bool matches = std::all_of(on_labels.begin(), on_labels.end(), [&](auto& matcher) {
      return matcher.Matches(*series.labels);
    });
    if (matches) columns->push_back(column);
  }
  return columns;
}

uint64_t WatchedRows::bytes() const {
  return sizeof(WatchedRows) + (times.size() + steps.size() + values.size()) * sizeof(int64_t);
}

WatchedRows SelectRows(const storage::Change& change, WantedColumns::Columns columns) {
  TACHO_CHECK(change.layout != nullptr && columns != nullptr && !columns->empty());
  TACHO_CHECK(columns->back() < change.layout->series.size());  // They ascend.
  WatchedRows selected;
  selected.layout = change.layout;
  selected.columns = std::move(columns);
  const storage::RowsEntry& rows = change.rows;
  for (size_t row = 0; row < rows.rows; ++row) {
    selected.times.push_back(rows.Time(row));
    selected.steps.push_back(rows.Step(row));
  }
  selected.values.reserve(rows.rows * selected.columns->size());
  for (const uint32_t column : *selected.columns) {
    for (size_t row = 0; row < rows.rows; ++row) {
      selected.values.push_back(rows.Value(row, column));
    }
  }
  return selected;
}

SeriesNumbers::Number SeriesNumbers::Of(storage::SeriesId series) {
  const auto [found, added] = numbers_.try_emplace(series, static_cast<uint32_t>(numbers_.size()));
  return {found->second, added};
}

void FillSeries(const storage::Series& series, uint32_t index, v1::WatchResponse* response) {
  response->mutable_series()->set_index(index);
  ToProto(series, response->mutable_series()->mutable_series());
}

void WatchBacklog::Add(WatchedRows rows) {
  bytes_ += rows.bytes();
  rows_.push_back(std::move(rows));
}

absl::StatusOr<bool> WatchBacklog::Next(v1::WatchResponse* response) {
  while (!rows_.empty()) {
    response->Clear();
    absl::StatusOr<bool> filled = NextOfFirst(response);
    if (!filled.ok() || *filled) return filled;
    TACHO_CHECK(bytes_ >= rows_.front().bytes());
    bytes_ -= rows_.front().bytes();
    rows_.pop_front();
    column_ = row_ = 0;
    event_sent_ = false;
  }
  return false;
}

absl::StatusOr<bool> WatchBacklog::NextOfFirst(v1::WatchResponse* response) {
  const WatchedRows& rows = rows_.front();
  if (rows.event != nullptr) {
    if (std::exchange(event_sent_, true)) return false;
    ToProto(*rows.event, response->mutable_event());
    return true;
  }
  for (; column_ < rows.columns->size(); ++column_, row_ = 0) {
    size_t next_row = row_;
    const storage::SampleBlock block = SamplesOf(rows, column_, &next_row);
    if (block.size() == 0) continue;
    const storage::Series& series = *rows.layout->series[(*rows.columns)[column_]];
    const SeriesNumbers::Number number = numbers_.Of(series.id);
    if (number.is_new) {
      if (numbers_.size() > max_series_) return absl::ResourceExhaustedError("max_series");
      FillSeries(series, number.index, response);
      return true;
    }
    row_ = next_row;
    response->mutable_samples()->set_index(number.index);
    FillPoints(block, response->mutable_samples()->mutable_points());
    samples_ += block.size();
    return true;
  }
  return false;
}

absl::StatusOr<WatchPlan> MakeWatchPlan(const v1::WatchRequest& request, uint64_t max_series) {
  auto selection = MakeSelection(request.selector());
  if (!selection.ok()) return selection.status();
  WatchPlan plan;
  plan.selection = *std::move(selection);
  if (request.has_begin_unix_ns()) plan.begin_ns = request.begin_unix_ns();
  plan.events = request.events();
  plan.max_series = std::min(
      request.max_series() == 0 ? kDefaultWatchedSeries : request.max_series(), max_series);
  return plan;
}

absl::Status TooManyWatched(const WatchPlan& plan) {
  return absl::ResourceExhaustedError(
      absl::StrCat("more than max_series = ", plan.max_series,
                   " series match: name metrics, add matchers, or raise max_series (up to the "
                   "collector's query.max_series)"));
}

}  // namespace tacho::server::query
