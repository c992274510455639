#include "storage/index/index_records.h"

#include "storage/codec/bytes.h"

namespace tacho::storage {
namespace {

// A varint that must fit 32 bits.
std::optional<uint32_t> Read32(ByteReader* in) {
  const uint64_t value = in->Varint();
  if (value > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(value);
}

std::optional<std::vector<LabelSet::Label>> ReadLabels(ByteReader* in) {
  const uint64_t count = in->Varint();
  if (count > in->rest().size()) return std::nullopt;
  std::vector<LabelSet::Label> labels;
  labels.reserve(count);
  for (uint64_t i = 0; i < count && in->ok(); ++i) {
    const absl::string_view name = in->String();
    labels.emplace_back(name, in->String());
  }
  return labels;
}

}  // namespace

std::string EncodeNextIds(const NextIds& next) {
  std::string out;
  PutVarint(next.job, &out);
  PutVarint(next.series, &out);
  PutVarint(next.layout, &out);
  return out;
}

std::optional<NextIds> DecodeNextIds(absl::string_view bytes) {
  ByteReader in(bytes);
  NextIds next;
  const auto job = Read32(&in);
  next.series = in.Varint();
  next.layout = in.Varint();
  if (!in.AtEnd() || !job || *job == 0 || next.series == 0 || next.layout == 0) {
    return std::nullopt;
  }
  next.job = *job;
  return next;
}

std::string EncodeMetric(const Metric& metric) {
  std::string out(1, static_cast<char>(metric.type));
  PutString(metric.name, &out);
  PutString(metric.unit, &out);
  PutString(metric.help, &out);
  return out;
}

std::optional<Metric> DecodeMetric(absl::string_view bytes) {
  ByteReader in(bytes);
  Metric metric;
  const uint8_t type = in.Byte();
  metric.type = static_cast<MetricType>(type);
  metric.name = std::string(in.String());
  metric.unit = std::string(in.String());
  metric.help = std::string(in.String());
  const bool known = type >= static_cast<uint8_t>(MetricType::kGauge) &&
                     type <= static_cast<uint8_t>(MetricType::kHistogram);
  if (!in.AtEnd() || !known) return std::nullopt;
  return metric;
}

std::string EncodeSeriesRecord(const SeriesRecord& record) {
  std::string out;
  PutVarint(record.series_before, &out);
  PutVarint(record.task ? uint64_t{*record.task} + 1 : 0, &out);
  PutString(record.host, &out);
  PutVarint(record.label_sets.size(), &out);
  for (const auto& labels : record.label_sets) {
    PutVarint(labels.size(), &out);
    for (const auto& [name, value] : labels) {
      PutString(name, &out);
      PutString(value, &out);
    }
  }
  PutVarint(record.series.size(), &out);
  int64_t previous = 0;
  for (const SeriesRecord::One& one : record.series) {
    PutVarint(ZigZag(int64_t{one.metric} - previous), &out);
    PutVarint(one.labels, &out);
    previous = one.metric;
  }
  return out;
}

std::optional<SeriesRecord> DecodeSeriesRecord(absl::string_view bytes) {
  ByteReader in(bytes);
  SeriesRecord record;
  record.series_before = in.Varint();
  const uint64_t task = in.Varint();
  if (task > uint64_t{UINT32_MAX} + 1) return std::nullopt;
  if (task != 0) record.task = static_cast<uint32_t>(task - 1);
  record.host = in.String();
  const uint64_t label_sets = in.Varint();
  if (label_sets > bytes.size()) return std::nullopt;
  for (uint64_t i = 0; i < label_sets && in.ok(); ++i) {
    auto labels = ReadLabels(&in);
    if (!labels) return std::nullopt;
    record.label_sets.push_back(*std::move(labels));
  }
  const uint64_t series = in.Varint();
  if (!in.ok() || series == 0 || series > in.rest().size()) return std::nullopt;
  record.series.reserve(series);
  uint64_t metric = 0;
  for (uint64_t i = 0; i < series; ++i) {
    metric += static_cast<uint64_t>(UnZigZag(in.Varint()));
    const uint64_t labels = in.Varint();
    if (metric == 0 || metric > UINT32_MAX || labels >= label_sets) return std::nullopt;
    record.series.push_back({static_cast<MetricId>(metric), static_cast<uint32_t>(labels)});
  }
  if (!in.AtEnd()) return std::nullopt;
  return record;
}

void LayoutRecord::Add(SeriesId id) {
  if (!ranges.empty() && ranges.back().first + ranges.back().second == id) {
    ++ranges.back().second;
  } else {
    ranges.emplace_back(id, 1);
  }
}

uint64_t LayoutRecord::columns() const {
  uint64_t columns = 0;
  for (const auto& [first, count] : ranges) columns += count;
  return columns;
}

std::string EncodeLayoutRecord(const LayoutRecord& record) {
  std::string out;
  PutVarint(record.attempt, &out);
  out.push_back(record.has_steps ? 1 : 0);
  PutVarint(record.ranges.size(), &out);
  SeriesId end = 0;
  for (const auto& [first, count] : record.ranges) {
    PutVarint(ZigZag(static_cast<int64_t>(first - end)), &out);
    PutVarint(count, &out);
    end = first + count;
  }
  return out;
}

std::optional<LayoutRecord> DecodeLayoutRecord(absl::string_view bytes) {
  ByteReader in(bytes);
  LayoutRecord record;
  const auto attempt = Read32(&in);
  const uint8_t has_steps = in.Byte();
  const uint64_t ranges = in.Varint();
  if (!attempt || has_steps > 1 || ranges == 0 || ranges > bytes.size()) return std::nullopt;
  record.attempt = *attempt;
  record.has_steps = has_steps == 1;
  uint64_t columns = 0;
  SeriesId end = 0;
  for (uint64_t i = 0; i < ranges; ++i) {
    const SeriesId first = end + static_cast<uint64_t>(UnZigZag(in.Varint()));
    const uint64_t count = in.Varint();
    if (count == 0 || count > kMaxLayoutColumns || (columns += count) > kMaxLayoutColumns)
      return std::nullopt;
    end = first + count;
    if (first == 0 || end < first) return std::nullopt;
    record.ranges.emplace_back(first, count);
  }
  if (!in.AtEnd()) return std::nullopt;
  return record;
}

}  // namespace tacho::storage
