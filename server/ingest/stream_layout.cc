#include "server/ingest/stream_layout.h"

#include <bit>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/base/stale_marker.h"
#include "server/limits/limit_text.h"

namespace tacho::server::ingest {

StreamLayout StreamLayout::Of(const AdmittedLayout& admitted,
                              storage::Store::Registration registration) {
  const storage::LayoutDefinition& definition = admitted.definition;
  StreamLayout result;
  if (registration.layout != nullptr) {
    result.id = registration.layout->id;
    result.job = registration.layout->series.front()->job_id;
    result.layout = registration.layout;
  }
  result.width = admitted.width;
  result.has_steps = definition.has_steps;
  if (!definition.series.empty()) {
    result.first_series = limits::ShortText(limits::DescribeSeries(definition.series[0]));
  }
  result.refused = admitted.invalid;
  if (admitted.invalid > 0) {
    result.concerned.push_back({.series = admitted.invalid,
                                .example = admitted.invalid_example,
                                .detail = admitted.invalid_problem});
  }
  for (const storage::Breach& breach : registration.breaches) {
    if (breach.action == storage::LimitAction::kReject) ++result.refused;
    result.Concern(admitted, registration, breach);
  }
  result.whole = registration.columns.size() == admitted.width;
  if (result.whole) return result;
  result.columns = std::move(registration.columns);
  result.folded = std::move(registration.folded);
  if (admitted.columns.empty()) return result;
  for (uint32_t& column : result.columns) column = admitted.columns[column];
  for (auto& columns : result.folded) {
    for (uint32_t& column : columns) column = admitted.columns[column];
  }
  return result;
}

void StreamLayout::Concern(const AdmittedLayout& admitted,
                           const storage::Store::Registration& registration,
                           const storage::Breach& breach) {
  const storage::SeriesDefinition& series = admitted.definition.series[breach.column];
  absl::string_view label;
  if (breach.label >= 0) label = series.labels[static_cast<size_t>(breach.label)].first;
  const absl::string_view name =
      breach.limit == storage::Limit::kMetricSeries ? series.metric.name : label;
  // One with a name, as long as there are few; else one for all names of the limit.
  Concerned* unnamed = nullptr;
  for (Concerned& known : concerned) {
    if (known.limit != breach.limit || known.action != breach.action) continue;
    if (known.name == name) {
      ++known.series;
      return;
    }
    if (known.name.empty()) unnamed = &known;
  }
  const bool few = concerned.size() < kMaxNamed;
  if (!few && unnamed != nullptr) {
    ++unnamed->series;
    return;
  }
  concerned.push_back(
      {.limit = breach.limit,
       .action = breach.action,
       .name = few ? std::string(name) : "",
       .series = 1,
       .example = limits::ShortText(limits::DescribeSeries(series)),
       .detail = limits::ShortText(limits::DescribeLimit(*registration.limits, breach, label))});
}

void RowSelection::Select(const storage::RowsView& rows, const StreamLayout& layout,
                          const TimeWindow& window) {
  future_rows_ = 0;
  old_rows_ = 0;
  for (const int64_t time : rows.times) {
    if (time > window.newest_ns) ++future_rows_;
    if (time < window.oldest_ns) ++old_rows_;
  }
  if (future_rows_ + old_rows_ == 0 && layout.whole) {
    selected_ = rows;
    return;
  }
  times_.clear();
  steps_.clear();
  values_.clear();
  for (size_t row = 0; row < rows.times.size(); ++row) {
    const int64_t time = rows.times[row];
    if (time >= window.oldest_ns && time <= window.newest_ns) CopyRow(rows, layout, row);
  }
  selected_ = {times_, steps_, values_};
}

void RowSelection::CopyRow(const storage::RowsView& rows, const StreamLayout& layout, size_t row) {
  times_.push_back(rows.times[row]);
  if (!rows.steps.empty()) steps_.push_back(rows.steps[row]);
  const auto values = rows.values.subspan(row * layout.width, layout.width);
  if (layout.whole) {
    values_.insert(values_.end(), values.begin(), values.end());
    return;
  }
  for (const uint32_t column : layout.columns) values_.push_back(values[column]);
  for (const auto& columns : layout.folded) values_.push_back(SumOf(values, columns));
}

double RowSelection::SumOf(std::span<const double> values, const std::vector<uint32_t>& columns) {
  const auto is_stale = [](double value) { return IsStaleMarker(value); };
  double sum = StaleMarker();
  for (const uint32_t column : columns) {
    if (is_stale(values[column])) continue;
    // The first as it is: a sum of one is that one, bit for bit.
    sum = is_stale(sum) ? values[column] : sum + values[column];
  }
  return sum;
}

}  // namespace tacho::server::ingest
