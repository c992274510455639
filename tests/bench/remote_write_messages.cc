#include "tests/bench/remote_write_messages.h"

#include <snappy.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tacho::bench {
namespace {

// The wire format by hand: three small messages, and no .proto of Prometheus is needed.
//   WriteRequest { repeated TimeSeries timeseries = 1; }
//   TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2; }
//   Label        { string name = 1; string value = 2; }
//   Sample       { double value = 1; int64 timestamp = 2; }   timestamp in ms
constexpr char kField1Bytes = 0x0a;
constexpr char kField2Bytes = 0x12;
constexpr char kField1Fixed64 = 0x09;
constexpr char kField2Varint = 0x10;

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendBytes(char field, const std::string& bytes, std::string* out) {
  out->push_back(field);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

void AppendLabel(const std::string& name, const std::string& value, std::string* series) {
  std::string label;
  AppendBytes(kField1Bytes, name, &label);
  AppendBytes(kField2Bytes, value, &label);
  AppendBytes(kField1Bytes, label, series);
}

void AppendSample(double value, int64_t time_ms, std::string* series) {
  std::string sample(1, kField1Fixed64);
  char bits[sizeof value];
  std::memcpy(bits, &value, sizeof value);
  sample.append(bits, sizeof bits);
  sample.push_back(kField2Varint);
  AppendVarint(static_cast<uint64_t>(time_ms), &sample);
  AppendBytes(kField2Bytes, sample, series);
}

// Labels of each column, encoded, sorted by name as remote write demands.
std::vector<std::string> EncodeLabels(const FleetHost& host) {
  std::vector<std::string> labels;
  for (const FleetSeries& column : FleetColumns()) {
    std::string& series = labels.emplace_back();
    AppendLabel("__name__", column.metric->name, &series);
    if (column.chip >= 0) AppendLabel("chip", absl::StrCat(column.chip), &series);
    AppendLabel("host", host.host(), &series);
    AppendLabel("job", host.job(), &series);
    AppendLabel("task", absl::StrCat(host.task()), &series);
  }
  return labels;
}

// Rows first_row and on of a table, as a WriteRequest.
std::string EncodeTableRows(const ReplayOptions& options, const ColumnTable& table, size_t task,
                            size_t first_column, size_t first_row) {
  const size_t end = std::min(first_row + options.rows, table.front().size());
  std::string request;
  for (size_t column = 0; column < table.size(); ++column) {
    std::string series;
    AppendLabel("__name__", absl::StrCat("column_", first_column + column), &series);
    AppendLabel("host", "replay", &series);
    AppendLabel("job", options.job, &series);
    AppendLabel("task", absl::StrCat(task), &series);
    for (size_t row = first_row; row < end; ++row) {
      const int64_t time_ns =
          options.start_unix_ns + static_cast<int64_t>(row) * options.interval_ns;
      AppendSample(table[column][row], time_ns / 1'000'000, &series);
    }
    AppendBytes(kField1Bytes, series, &request);
  }
  return request;
}

Post ToPost(const std::string& request, uint64_t samples) {
  std::string body;
  snappy::Compress(request.data(), request.size(), &body);
  const std::string head = absl::StrCat(
      "POST /api/v1/write HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Encoding: snappy\r\n"
      "Content-Type: application/x-protobuf\r\nX-Prometheus-Remote-Write-Version: 0.1.0\r\n"
      "Content-Length: ",
      body.size(), "\r\n\r\n");
  return {.request = absl::StrCat(head, body), .samples = samples};
}

}  // namespace

std::vector<Post> MakeRemoteWrites(const FleetOptions& options, uint32_t first_host, uint32_t hosts,
                                   uint32_t rows, uint32_t requests) {
  std::vector<FleetHost> sources;
  std::vector<std::vector<std::string>> labels;
  for (uint32_t i = 0; i < hosts; ++i) {
    sources.emplace_back(options, first_host + i);
    labels.push_back(EncodeLabels(sources.back()));
  }
  std::vector<Post> posts;
  for (uint32_t i = 0; i < requests; ++i) {
    std::string request;
    for (size_t host = 0; host < hosts; ++host) {
      std::vector<FleetRow> block;
      for (uint32_t r = 0; r < rows; ++r) block.push_back(sources[host].NextRow());
      for (size_t column = 0; column < kSeries; ++column) {
        std::string series = labels[host][column];
        for (const FleetRow& row : block) {
          AppendSample(row.values[column], row.time_unix_ns / 1'000'000, &series);
        }
        AppendBytes(kField1Bytes, series, &request);
      }
    }
    posts.push_back(ToPost(request, uint64_t{hosts} * rows * kSeries));
  }
  return posts;
}

std::vector<Post> MakeReplayWrites(const ReplayOptions& options,
                                   const std::vector<ColumnTable>& tables) {
  size_t rows = 0;
  for (const ColumnTable& table : tables) rows = std::max(rows, table.front().size());
  std::vector<Post> posts;
  for (size_t row = 0; row < rows; row += options.rows) {
    size_t first_column = 0;
    for (size_t i = 0; i < tables.size(); ++i) {
      if (row < tables[i].front().size()) {
        const size_t count = std::min<size_t>(options.rows, tables[i].front().size() - row);
        posts.push_back(ToPost(EncodeTableRows(options, tables[i], i, first_column, row),
                               count * tables[i].size()));
      }
      first_column += tables[i].size();
    }
  }
  return posts;
}

}  // namespace tacho::bench
