#include "agent/sources/rows/chip_sample.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "client/ring/ring_format.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

v1::Layout LayoutOf(const std::string& job, const std::string& host,
                    const std::map<ChipSeries, absl::Time>& columns) {
  v1::Layout layout;
  layout.mutable_source()->set_job(job);
  layout.mutable_source()->set_host(host);
  for (const auto& [column, last] : columns) {
    v1::Layout::Series* const series = layout.add_series();
    series->mutable_metric()->set_name(column.metric->name);
    series->mutable_metric()->set_type(column.metric->type);
    series->mutable_metric()->set_unit(column.metric->unit);
    series->mutable_metric()->set_help(column.metric->help);
    for (const auto& [name, value] : column.labels) {
      v1::Label* const label = series->add_labels();
      label->set_name(name);
      label->set_value(value);
    }
  }
  return layout;
}

}  // namespace

bool operator<(const ChipSeries& a, const ChipSeries& b) {
  const int names = std::strcmp(a.metric->name, b.metric->name);
  return names != 0 ? names < 0 : a.labels < b.labels;
}

void ChipSample::Add(const ChipMetric& metric, ChipLabels labels, double value) {
  // A collector refuses a label without a value.
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  if (values_.size() >= kMaxSeries) {
    ++left_out_;
    return;
  }
  values_.try_emplace({&metric, std::move(labels)}, value);
}

ChipRows::ChipRows(std::string job, std::string host)
    : job_(std::move(job)), host_(std::move(host)) {}

absl::Status ChipRows::Write(absl::Time now, const ChipSample& sample, RowSink* sink) {
  if (sample.values().empty() && last_was_empty_) return absl::OkStatus();
  TACHO_RETURN_IF_ERROR(Grow(now, sample, sink));
  std::vector<double> values;
  values.reserve(columns_.size());
  for (auto& [column, last] : columns_) {
    const auto found = sample.values().find(column);
    if (found != sample.values().end()) last = now;
    values.push_back(found != sample.values().end() ? found->second : StaleMarker());
  }
  const int64_t time_ns = absl::ToUnixNanos(now);
  if (auto s = sink->AppendRows(layout_, {&time_ns, 1}, {}, values, {}); !s.ok()) return s;
  last_was_empty_ = sample.values().empty();
  return absl::OkStatus();
}

absl::Status ChipRows::Grow(absl::Time now, const ChipSample& sample, RowSink* sink) {
  std::map<ChipSeries, absl::Time> columns = columns_;
  bool grown = false;
  for (const auto& [series, value] : sample.values()) {
    grown |= columns.try_emplace(series, now).second;
  }
  if (!grown) return absl::OkStatus();
  std::erase_if(columns, [&](const auto& column) {
    return now - column.second > kForget && !sample.values().contains(column.first);
  });
  TACHO_ASSIGN_OR_RETURN(const uint32_t layout, sink->DefineLayout(LayoutOf(job_, host_, columns)));
  layout_ = layout;
  columns_ = std::move(columns);
  return absl::OkStatus();
}

}  // namespace tacho::agent
