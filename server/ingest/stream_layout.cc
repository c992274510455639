#include "server/ingest/stream_layout.h"

#include "absl/strings/str_cat.h"

namespace tacho::server {

StreamLayout StreamLayout::Of(const storage::LayoutDefinition& definition,
                              const storage::Store::Registration& registration) {
  StreamLayout result;
  if (registration.layout != nullptr) {
    result.id = registration.layout->id;
    result.job = registration.layout->series.front()->job_id;
    result.layout = registration.layout;
  }
  result.width = static_cast<uint32_t>(definition.series.size());
  result.has_steps = definition.has_steps;
  if (!definition.series.empty()) result.first_series = DescribeSeries(definition.series[0]);
  if (!registration.refused.empty()) result.columns = registration.columns;
  for (const auto& refusal : registration.refused) {
    Refused& refused = refusal.job_limit ? result.by_job_limit : result.by_store_limit;
    if (refused.series++ == 0) refused.example = DescribeSeries(definition.series[refusal.column]);
  }
  return result;
}

std::string DescribeSeries(const storage::SeriesDefinition& series) {
  std::string text = series.metric.name;
  const char* separator = "{";
  for (const auto& [name, value] : series.labels) {
    absl::StrAppend(&text, separator, name, "=\"", value, "\"");
    separator = ",";
  }
  if (!series.labels.empty()) text += '}';
  return text;
}

void RowSelection::Select(const storage::RowsView& rows, const StreamLayout& layout,
                          const TimeWindow& window) {
  future_rows_ = 0;
  old_rows_ = 0;
  for (const int64_t time : rows.times) {
    if (time > window.newest_ns) ++future_rows_;
    if (time < window.oldest_ns) ++old_rows_;
  }
  if (future_rows_ + old_rows_ == 0 && layout.columns.empty()) {
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
  if (layout.columns.empty()) {
    values_.insert(values_.end(), values.begin(), values.end());
    return;
  }
  for (const uint32_t column : layout.columns) values_.push_back(values[column]);
}

}  // namespace tacho::server
