// Rows to frames and back. Rows are sorted by time and step and split by day first, so that a frame
// lies in one day and a reader need not sort it.
#include "storage/codec/frame.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "storage/codec/bytes.h"
#include "storage/codec/column_codec.h"

namespace tacho::storage {
namespace {

// Rows of a frame; more are refused when decoding, so that damaged bytes cannot ask for all memory.
constexpr uint64_t kMaxRows = 1 << 24;

// Units of a span, in nanoseconds.
constexpr uint64_t kSpanUnits[] = {1, 1'000, 1'000'000, 1'000'000'000};

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
  if (!steps.empty()) {
    PutVarint(ZigZag(steps.front()), &out);
    PutVarint(ZigZag(steps.back()), &out);
  }
  return out;
}

void PutSpan(uint64_t span_ns, std::string* out) {
  uint64_t unit = 3;
  while (span_ns % kSpanUnits[unit] != 0) --unit;
  PutVarint(span_ns / kSpanUnits[unit] << 2 | unit, out);
}

uint64_t ReadSpan(ByteReader* in) {
  const uint64_t span = in->Varint();
  return (span >> 2) * kSpanUnits[span & 3];
}

int64_t StepOf(const FrameRows& rows, size_t row) {
  return rows.steps.empty() ? kNoStep : rows.steps[row];
}

// Row numbers in ascending (time, step); of equal ones the later write stays behind.
std::vector<uint32_t> OrderOf(const FrameRows& rows) {
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  const auto before = [&](uint32_t a, uint32_t b) {
    if (rows.times[a] != rows.times[b]) return rows.times[a] < rows.times[b];
    return StepOf(rows, a) < StepOf(rows, b);
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::stable_sort(order.begin(), order.end(), before);
  }
  return order;
}

bool AreRepeats(const FrameRows& rows, size_t a, size_t b) {
  return rows.times[a] == rows.times[b] && StepOf(rows, a) == StepOf(rows, b);
}

bool HasRepeats(const FrameRows& rows, std::span<const uint32_t> order) {
  for (size_t i = 1; i < order.size(); ++i) {
    if (AreRepeats(rows, order[i - 1], order[i])) return true;
  }
  return false;
}

// The rows in this order, those of one (time, step) made one. A column's last value counts; a stale
// marker is none.
FrameRows Combine(const FrameRows& rows, size_t width, std::span<const uint32_t> order) {
  FrameRows out;
  std::vector<uint32_t> row_of(order.size());  // In `out`, of each row of the order.
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !AreRepeats(rows, order[i - 1], order[i])) {
      out.times.push_back(rows.times[order[i]]);
      if (!rows.steps.empty()) out.steps.push_back(rows.steps[order[i]]);
    }
    row_of[i] = static_cast<uint32_t>(out.times.size() - 1);
  }
  out.values.resize(width * out.size(), StaleMarker());
  for (size_t column = 0; column < width; ++column) {
    const double* const from = rows.values.data() + column * rows.size();
    double* const to = out.values.data() + column * out.size();
    for (size_t i = 0; i < order.size(); ++i) {
      if (!IsStaleMarker(from[order[i]])) to[row_of[i]] = from[order[i]];
    }
  }
  return out;
}

std::vector<int64_t> Gather(const std::vector<int64_t>& from, std::span<const uint32_t> order) {
  std::vector<int64_t> out;
  if (from.empty()) return out;
  out.reserve(order.size());
  for (const uint32_t row : order) out.push_back(from[row]);
  return out;
}

// Encodes the rows `order` of one day.
FrameRef EncodeFrame(const Layout& layout, const FrameRows& rows, std::span<const uint32_t> order,
                     FramePosition position, const PutColumn& put) {
  const std::vector<int64_t> times = Gather(rows.times, order);
  FrameEncoder encoder(layout, times, Gather(rows.steps, order), position, put);
  std::vector<double> values(order.size());
  for (size_t column = 0; column < layout.series.size(); ++column) {
    const double* const from = rows.values.data() + column * rows.size();
    for (size_t i = 0; i < order.size(); ++i) values[i] = from[order[i]];
    encoder.Put(column, values);
  }
  return encoder.frame();
}

}  // namespace

FrameEncoder::FrameEncoder(const Layout& layout, std::span<const int64_t> times,
                           std::span<const int64_t> steps, FramePosition position,
                           const PutColumn& put)
    : layout_(layout),
      times_(times),
      put_(put),
      frame_{.day = DayOf(times.front()),
             .layout = layout.id,
             .first_time_ns = times.front(),
             .position = position,
             .rows = static_cast<uint32_t>(times.size()),
             .job = layout.series.front()->job_id} {
  TACHO_CHECK(times.size() <= kMaxRows && (steps.empty() || steps.size() == times.size()));
  TACHO_CHECK(times.front() <= times.back() && DayOf(times.back()) == frame_.day);
  put_(frame_.day,
       TimeColumnKey(layout.series.front()->job_id, layout.id, frame_.first_time_ns, position),
       EncodeTimeColumn(layout.attempt, times, steps));
}

void FrameEncoder::Put(size_t column, std::span<const double> values) {
  TACHO_CHECK(column < layout_.series.size() && values.size() == frame_.rows);
  const ColumnStats stats = ColumnStats::Of(values);
  if (stats.count == 0) return;
  bytes_.clear();
  PutVarint(layout_.id, &bytes_);
  PutVarint(frame_.rows, &bytes_);
  PutSpan(static_cast<uint64_t>(times_.back()) - static_cast<uint64_t>(times_.front()), &bytes_);
  EncodeStats(stats, frame_.rows, &bytes_);
  ColumnCodec::EncodeValues(values, &bytes_);
  const Series& series = *layout_.series[column];
  const ValueColumnKey key{series.job_id, series.metric_id, series.id, frame_.first_time_ns,
                           frame_.position};
  put_(frame_.day, key.Encode(), bytes_);
}

std::vector<FrameRef> EncodeFrames(const Layout& layout, const FrameRows& rows,
                                   FramePosition position, const PutColumn& put) {
  TACHO_CHECK(!layout.series.empty() && rows.size() > 0 && rows.size() <= UINT32_MAX);
  TACHO_CHECK(rows.steps.empty() || rows.steps.size() == rows.size());
  TACHO_CHECK(rows.values.size() == rows.size() * layout.series.size());
  std::vector<uint32_t> order = OrderOf(rows);
  if (HasRepeats(rows, order)) {
    return EncodeFrames(layout, Combine(rows, layout.series.size(), order), position, put);
  }
  std::vector<FrameRef> frames;
  for (size_t begin = 0; begin < order.size();) {
    const int64_t day = DayOf(rows.times[order[begin]]);
    size_t end = begin + 1;
    // Rows that could not be sealed for long may be more than one frame holds.
    while (end < order.size() && end - begin < kMaxRows && DayOf(rows.times[order[end]]) == day) {
      ++end;
    }
    frames.push_back(
        EncodeFrame(layout, rows, std::span(order).subspan(begin, end - begin), position, put));
    begin = end;
  }
  return frames;
}

absl::StatusOr<TimeColumn> DecodeTimeColumn(absl::string_view bytes) {
  ByteReader in(bytes);
  const uint64_t rows = in.Varint();
  TimeColumn column;
  column.attempt = static_cast<uint32_t>(in.Varint());
  const absl::string_view times = in.String();
  const absl::string_view steps = in.String();
  if (!steps.empty()) {
    in.Varint();
    in.Varint();
  }
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

absl::StatusOr<TimeColumnEnds> DecodeTimeColumnEnds(absl::string_view bytes) {
  ByteReader in(bytes);
  TimeColumnEnds ends;
  const uint64_t rows = in.Varint();
  ends.rows = static_cast<uint32_t>(rows);
  ends.attempt = static_cast<uint32_t>(in.Varint());
  in.String();
  if (!in.String().empty()) {
    ends.first_step = UnZigZag(in.Varint());
    ends.last_step = UnZigZag(in.Varint());
  }
  if (!in.AtEnd() || rows == 0 || rows > kMaxRows) {
    return absl::DataLossError("a time column is damaged");
  }
  return ends;
}

absl::StatusOr<uint32_t> DecodeTimeColumnRows(absl::string_view bytes) {
  ByteReader in(bytes);
  const uint64_t rows = in.Varint();
  if (!in.ok() || rows == 0 || rows > kMaxRows) {
    return absl::DataLossError("a time column is damaged");
  }
  return static_cast<uint32_t>(rows);
}

absl::StatusOr<ValueColumnHeader> DecodeValueColumnHeader(int64_t first_time_ns,
                                                          absl::string_view bytes) {
  const auto damaged = [] { return absl::DataLossError("a value column is damaged"); };
  ByteReader in(bytes);
  ValueColumnHeader header;
  header.layout = in.Varint();
  const uint64_t rows = in.Varint();
  if (!in.ok() || rows == 0 || rows > kMaxRows) return damaged();
  header.rows = static_cast<uint32_t>(rows);
  header.last_time_ns = static_cast<int64_t>(static_cast<uint64_t>(first_time_ns) + ReadSpan(&in));
  const DecodedStats stats = DecodeStats(header.rows, &in, &header.stats);
  header.encoded = in.rest();
  if (stats == DecodedStats::kWritten) return header;
  std::vector<double> values;
  if (stats == DecodedStats::kDamaged ||
      !ColumnCodec::DecodeValues(header.encoded, header.rows, &values).ok()) {
    return damaged();
  }
  header.stats = ColumnStats::Of(values);
  return header;
}

}  // namespace tacho::storage
