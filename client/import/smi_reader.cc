// Reads what 'nvidia-smi --query-gpu=… --format=csv' prints, to a file or through PowerShell:
//
//   timestamp, index, name, utilization.gpu [%], power.draw [W], clocks_throttle_reasons.active
//   2026/01/31 12:00:00.250, 0, NVIDIA H100 80GB HBM3, 97 %, 651.20 W, 0x0000000000000004
//
// A column is a metric with the unit of its name; those that say which GPU it is are labels. Cells
// repeat the unit, unless the option nounits was given.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/import/csv_reader.h"
#include "client/import/formats.h"
#include "client/import/readers.h"
#include "client/import/row_maker.h"
#include "client/import/values.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

// Columns that distinguish GPUs or their processes, and the labels that they become.
struct SmiLabel {
  absl::string_view column, label;
};
constexpr absl::string_view kTimestamp = "timestamp";
constexpr SmiLabel kSmiLabels[] = {
    {"index", "chip"},           {"uuid", "uuid"},
    {"gpu_uuid", "uuid"},        {"name", "name"},
    {"gpu_name", "name"},        {"pci.bus_id", "bus_id"},
    {"gpu_bus_id", "bus_id"},    {"serial", "serial"},
    {"gpu_serial", "serial"},    {"pid", "pid"},
    {"process_name", "process"},
};

// Names that no other table gives its columns (nvidia-smi --help-query-gpu).
constexpr absl::string_view kSmiPrefixes[] = {"utilization.", "memory.", "power.", "temperature.",
                                              "clocks.",      "clocks_", "pcie.",  "fan.speed"};
constexpr absl::string_view kSmiUnits[] = {" [%]", " [MiB]", " [W]", " [MHz]"};

struct SmiWord {
  absl::string_view word;
  double value;
};
constexpr SmiWord kSmiWords[] = {{"Active", 1},   {"Not Active", 0}, {"Enabled", 1},
                                 {"Disabled", 0}, {"Yes", 1},        {"No", 0}};

// The fields of a line without the spaces around them.
std::vector<std::string> SmiFields(absl::string_view line) {
  std::vector<std::string> fields;
  SplitCsvRecord(line, ',', &fields);  // It quotes nothing.
  for (std::string& field : fields) field = std::string(absl::StripAsciiWhitespace(field));
  return fields;
}

bool IsSmiColumn(absl::string_view field) {
  const auto begins = [field](absl::string_view prefix) { return absl::StartsWith(field, prefix); };
  const auto ends = [field](absl::string_view unit) { return absl::EndsWith(field, unit); };
  return std::any_of(std::begin(kSmiPrefixes), std::end(kSmiPrefixes), begins) ||
         std::any_of(std::begin(kSmiUnits), std::end(kSmiUnits), ends);
}

// "[N/A]", "[Not Supported]", "[Unknown Error]".
bool IsAbsentWord(absl::string_view cell) {
  return cell == "N/A" || (absl::StartsWith(cell, "[") && absl::EndsWith(cell, "]"));
}

// A number, with or without the unit; a word for one; "P8", a performance state; or a mask of bits.
std::optional<double> SmiValue(absl::string_view cell, absl::string_view unit) {
  for (const SmiWord& word : kSmiWords) {
    if (cell == word.word) return word.value;
  }
  if (absl::ConsumePrefix(&cell, "0x")) {
    uint64_t bits = 0;
    constexpr uint64_t kExact = uint64_t{1} << 53;  // Above it a double leaves integers out.
    if (!absl::SimpleHexAtoi(cell, &bits) || bits > kExact) return std::nullopt;
    return static_cast<double>(bits);
  }
  if (!unit.empty() && absl::ConsumeSuffix(&cell, unit)) {
    cell = absl::StripTrailingAsciiWhitespace(cell);
  }
  absl::ConsumePrefix(&cell, "P");
  return ParseNumber(cell);
}

class SmiTable {
 public:
  SmiTable(const ReadOptions& options, RecordSink* sink)
      : options_(options), sink_(sink), rows_(options, sink), clock_(options, sink) {}

  absl::Status Begin(std::vector<std::string> header) {
    header_ = std::move(header);
    bool names_gpu = false;
    for (const std::string& field : header_) {
      Column& column = columns_.emplace_back();
      const bool is_time =
          options_.time_field.empty() ? field == kTimestamp : field == options_.time_field;
      if (is_time) {
        column.is_time = has_time_ = true;
        continue;
      }
      const auto* const label =
          std::find_if(std::begin(kSmiLabels), std::end(kSmiLabels),
                       [&field](const SmiLabel& known) { return known.column == field; });
      if (label != std::end(kSmiLabels)) {
        column.label = std::string(label->label);
        names_gpu = names_gpu || label->label != "name";
        continue;
      }
      const size_t unit = field.rfind(" [");
      column.metric = field.substr(0, unit);
      if (unit != std::string::npos) column.unit = field.substr(unit + 2, field.size() - unit - 3);
    }
    if (!has_time_) return NoTime();
    if (!names_gpu) {
      sink_->Note(
          "no column index, uuid or pci.bus_id says which GPU a line is of: all are taken for one");
    }
    return absl::OkStatus();
  }

  absl::Status Add(const std::vector<std::string>& fields, const std::string& where) {
    if (fields == header_) return absl::OkStatus();  // Again, of a file that was appended to.
    if (fields.size() != columns_.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there are ", fields.size(), " fields where the first line has ", columns_.size()));
    }
    SeriesKey key = options_.Key("");
    std::optional<int64_t> time;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (columns_[i].is_time) {
        TACHO_RETURN_IF_ERROR(TimeField(header_[i], options_, &clock_).Read(fields[i], &time));
      } else if (!columns_[i].label.empty() && !fields[i].empty() && !IsAbsentWord(fields[i])) {
        key.labels.emplace_back(columns_[i].label, fields[i]);
      }
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      TACHO_RETURN_IF_ERROR(AddCell(columns_[i], fields[i], where, &key));
    }
    return rows_.Finish(time, std::nullopt, where);
  }

 private:
  struct Column {
    bool is_time = false;
    std::string label;   // Or
    std::string metric;  // with
    std::string unit;
  };

  static absl::Status NoTime() {
    return absl::InvalidArgumentError(
        "line 1 has no column timestamp: query it, nvidia-smi --query-gpu=timestamp,…, or say "
        "which "
        "column has the times: --time-field NAME");
  }

  absl::Status AddCell(const Column& column, const std::string& cell, const std::string& where,
                       SeriesKey* key) {
    if (column.metric.empty() || cell.empty() || !options_.Wants(column.metric)) {
      return absl::OkStatus();
    }
    if (IsAbsentWord(cell)) {
      sink_->AddSkipped(Skip::kNoValue, 1, absl::StrCat(where, ", ", column.metric));
      return absl::OkStatus();
    }
    const std::optional<double> value = SmiValue(cell, column.unit);
    if (!value) {
      sink_->AddSkipped(Skip::kNotNumber, 1, absl::StrCat(where, ", ", column.metric));
      return absl::OkStatus();
    }
    key->metric = column.metric;
    key->unit = column.unit;
    return rows_.Add(*key, *value, where);
  }

  const ReadOptions& options_;
  RecordSink* const sink_;
  RowMaker rows_;
  StepClock clock_;
  std::vector<std::string> header_;
  std::vector<Column> columns_;
  bool has_time_ = false;
};

}  // namespace

bool IsSmiHead(absl::string_view head) {
  const std::vector<std::string> fields = SmiFields(head.substr(0, head.find('\n')));
  // It knows no steps, and no time but "timestamp": a table with others is a program's own.
  const bool has_timestamp = std::find(fields.begin(), fields.end(), kTimestamp) != fields.end();
  const bool is_other = std::any_of(fields.begin(), fields.end(), [&](const std::string& field) {
    size_t rank = 0;
    return IsStepName(field, &rank) || (!has_timestamp && IsTimeName(field, &rank));
  });
  return !is_other && fields.size() > 1 && std::any_of(fields.begin(), fields.end(), IsSmiColumn);
}

absl::Status ReadSmi(OpenSource open, const ReadOptions& options, RecordSink* sink) {
  TACHO_ASSIGN_OR_RETURN(auto source, open());
  LineReader lines(source.get());
  SmiTable table(options, sink);
  absl::string_view line;
  bool begun = false;
  while (lines.Next(&line)) {
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    std::vector<std::string> fields = SmiFields(line);
    if (!std::exchange(begun, true)) {
      TACHO_RETURN_IF_ERROR(table.Begin(std::move(fields)));
      continue;
    }
    const std::string where = LineText(lines.number());
    absl::Status status = table.Add(fields, where);
    if (!status.ok()) status = OnDamagedLine(status, where, options, sink);
    if (!status.ok()) return status;
  }
  if (!lines.status().ok() || begun) return lines.status();
  return absl::InvalidArgumentError("it is empty: a line with the columns' names is expected");
}

}  // namespace tacho::importer
