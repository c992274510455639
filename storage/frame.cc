#include "storage/frame.h"

#include <algorithm>
#include <numeric>

#include "storage/bytes.h"

namespace tacho::storage {
namespace {

// Rows of a frame; more are refused when decoding, so that damaged bytes cannot ask for all memory.
constexpr uint64_t kMaxRows = 1 << 24;

void PutDouble(double value, std::string* out) { PutLe64(std::bit_cast<uint64_t>(value), out); }
double ReadDouble(ByteReader* in) { return std::bit_cast<double>(in->Le64()); }

std::string EncodeTimeColumn(uint32_t attempt, std::span<const int64_t> times,
                             std::span<const int64_t> steps) {
  std::string out;
  PutVarint(times.size(), &out);
  PutVarint(attempt, &out);
  std::string column;
  ColumnCodec::EncodeIntegers(times, &column);
  PutString(column, &out);
  column.clear();
  ColumnCodec::EncodeIntegers(steps, &column);
  PutString(column, &out);
  return out;
}

std::string EncodeValueColumn(LayoutId layout, std::span<const int64_t> times,
                              std::span<const double> values, const ColumnStats& stats) {
  std::string out;
  PutVarint(layout, &out);
  PutVarint(values.size(), &out);
  PutVarint(ZigZag(times.back() - times.front()), &out);
  PutVarint(stats.count, &out);
  PutVarint(stats.non_finite, &out);
  for (const double value : {stats.min, stats.max, stats.sum, stats.first, stats.last}) {
    PutDouble(value, &out);
  }
  ColumnCodec::EncodeValues(values, &out);
  return out;
}

// Encodes the rows `order` of one day.
void EncodeFrame(const Layout& layout, const FrameRows& rows, std::span<const size_t> order,
                 FramePosition position, const PutColumn& put) {
  const auto gather = [&](const std::vector<int64_t>& from) {
    std::vector<int64_t> out;
    if (from.empty()) return out;
    out.reserve(order.size());
    for (const size_t row : order) out.push_back(from[row]);
    return out;
  };
  const std::vector<int64_t> times = gather(rows.times);
  const int64_t day = DayOf(times.front());
  const Series& any = *layout.series.front();
  put(day, TimeColumnKey(any.job_id, layout.id, times.front(), position),
      EncodeTimeColumn(layout.attempt, times, gather(rows.steps)));
  std::vector<double> values(order.size());
  const size_t width = layout.series.size();
  for (size_t column = 0; column < width; ++column) {
    for (size_t i = 0; i < order.size(); ++i) values[i] = rows.values[order[i] * width + column];
    const ColumnStats stats = ColumnStats::Of(values);
    if (stats.count == 0) continue;
    const Series& series = *layout.series[column];
    const ValueColumnKey key{series.job_id, series.metric_id, series.id, times.front(), position};
    put(day, key.Encode(), EncodeValueColumn(layout.id, times, values, stats));
  }
}

}  // namespace

void EncodeFrames(const Layout& layout, const FrameRows& rows, FramePosition position,
                  const PutColumn& put) {
  if (rows.size() == 0) return;
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Stable: of two rows of the same time the later write stays behind the earlier one.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rows.times[a] < rows.times[b]; });
  for (size_t begin = 0; begin < order.size();) {
    const int64_t day = DayOf(rows.times[order[begin]]);
    size_t end = begin + 1;
    while (end < order.size() && DayOf(rows.times[order[end]]) == day) ++end;
    EncodeFrame(layout, rows, std::span(order).subspan(begin, end - begin), position, put);
    begin = end;
  }
}

absl::StatusOr<TimeColumn> DecodeTimeColumn(absl::string_view bytes) {
  ByteReader in(bytes);
  const uint64_t rows = in.Varint();
  TimeColumn column;
  column.attempt = static_cast<uint32_t>(in.Varint());
  const absl::string_view times = in.String();
  const absl::string_view steps = in.String();
  if (!in.AtEnd() || rows == 0 || rows > kMaxRows) {
    return absl::DataLossError("a time column is damaged");
  }
  absl::Status status = ColumnCodec::DecodeIntegers(times, rows, &column.times);
  if (status.ok()) {
    if (steps.empty()) {
      column.steps.assign(rows, kNoStep);
    } else {
      status = ColumnCodec::DecodeIntegers(steps, rows, &column.steps);
    }
  }
  if (!status.ok()) return status;
  return column;
}

absl::StatusOr<ValueColumnHeader> DecodeValueColumnHeader(int64_t first_time_ns,
                                                          absl::string_view bytes) {
  ByteReader in(bytes);
  ValueColumnHeader header;
  header.layout = in.Varint();
  const uint64_t rows = in.Varint();
  header.last_time_ns = static_cast<int64_t>(static_cast<uint64_t>(first_time_ns) +
                                             static_cast<uint64_t>(UnZigZag(in.Varint())));
  header.stats.count = static_cast<uint32_t>(in.Varint());
  header.stats.non_finite = static_cast<uint32_t>(in.Varint());
  header.stats.min = ReadDouble(&in);
  header.stats.max = ReadDouble(&in);
  header.stats.sum = ReadDouble(&in);
  header.stats.first = ReadDouble(&in);
  header.stats.last = ReadDouble(&in);
  if (!in.ok() || rows == 0 || rows > kMaxRows) {
    return absl::DataLossError("a value column is damaged");
  }
  header.rows = static_cast<uint32_t>(rows);
  header.encoded = in.rest();
  return header;
}

}  // namespace tacho::storage
