// Reads CSV: records as RFC 4180, then either a column for each metric or a line for each
// sample.
#include "client/import/csv_reader.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/import/attempt_counter.h"
#include "client/import/exported_series.h"
#include "client/import/readers.h"
#include "client/import/row_maker.h"
#include "client/import/values.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

constexpr size_t kMaxColumns = 20'000;
constexpr size_t kNone = static_cast<size_t>(-1);

using Fields = std::vector<std::string>;

size_t ColumnOf(const Fields& header, absl::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  return found == header.end() ? kNone : static_cast<size_t>(found - header.begin());
}

// The column that is asked for, or the one with the most usual name.
absl::StatusOr<size_t> RoleColumn(const Fields& header, const std::string& wanted,
                                  absl::string_view flag, bool (*is)(absl::string_view, size_t*)) {
  if (!wanted.empty()) {
    const size_t column = ColumnOf(header, wanted);
    if (column != kNone) return column;
    return absl::InvalidArgumentError(absl::StrCat("--", flag, " '", wanted,
                                                   "': there is no such column; there are ",
                                                   absl::StrJoin(header, ", ")));
  }
  size_t best = kNone;
  size_t best_rank = kNone;
  for (size_t column = 0; column < header.size(); ++column) {
    size_t rank = 0;
    if (is(header[column], &rank) && rank < best_rank) {
      best = column;
      best_rank = rank;
    }
  }
  return best;
}

// A line for each sample.
class LongTable {
 public:
  static bool Fits(const Fields& header) {
    return ColumnOf(header, "metric") != kNone && ColumnOf(header, "value") != kNone &&
           ColumnOf(header, "time_unix_ns") != kNone;
  }

  LongTable(const Fields& header, const ReadOptions& options, RecordSink* sink)
      : series_(options), rows_(options, sink), sink_(sink) {
    for (size_t i = 0; i < std::size(kColumns); ++i) columns_[i] = ColumnOf(header, kColumns[i]);
  }

  absl::Status Add(const Fields& fields, absl::string_view where) {
    const std::optional<double> value = ParseNumber(Get(fields, kValue));
    if (!value) {
      sink_->AddSkipped(Skip::kNotNumber, 1, where);
      return absl::OkStatus();
    }
    ExportedSeries exported;
    exported.metric = Get(fields, kMetric);
    exported.type = Get(fields, kType);
    exported.unit = Get(fields, kUnit);
    exported.help = Get(fields, kHelp);
    exported.task = Get(fields, kTask);
    exported.host = Get(fields, kHost);
    exported.attempt = Get(fields, kAttempt);
    exported.labels = Get(fields, kLabels);
    TACHO_ASSIGN_OR_RETURN(const SeriesKey key, series_.Key(exported));
    std::optional<int64_t> step;
    if (const std::string& text = Get(fields, kStep); !text.empty()) {
      step = ParseInteger(text);
      if (!step) return absl::InvalidArgumentError(absl::StrCat("the step '", text, "' is none"));
    }
    TACHO_RETURN_IF_ERROR(rows_.Add(key, *value, where));
    return rows_.Finish(ParseTimeNs(Get(fields, kTime), TimeUnit::kNanos, absl::UTCTimeZone()),
                        step, where);
  }

 private:
  enum Column {
    kMetric,
    kType,
    kUnit,
    kHelp,
    kTask,
    kHost,
    kLabels,
    kAttempt,
    kTime,
    kStep,
    kValue,
    kColumnCount
  };
  static constexpr absl::string_view kColumns[] = {"metric",       "type", "unit",   "help",
                                                   "task",         "host", "labels", "attempt",
                                                   "time_unix_ns", "step", "value"};

  const std::string& Get(const Fields& fields, Column column) const {
    static const auto* const kEmpty = new std::string;
    return columns_[column] == kNone ? *kEmpty : fields[columns_[column]];
  }

  ExportedSeriesReader series_;
  RowMaker rows_;
  RecordSink* const sink_;
  size_t columns_[kColumnCount];
};

// A line for each time or step, a column for each metric.
class WideTable {
 public:
  WideTable(Fields header, const ReadOptions& options, RecordSink* sink)
      : header_(std::move(header)),
        options_(options),
        sink_(sink),
        attempts_(options, sink),
        rows_(options, &attempts_),
        clock_(options, sink) {}

  absl::Status Begin() {
    auto step = RoleColumn(header_, options_.step_field, "step-field", IsStepName);
    if (!step.ok()) return step.status();
    auto time = RoleColumn(header_, options_.time_field, "time-field", IsTimeName);
    if (!time.ok()) return time.status();
    step_ = *step;
    time_ = *time;
    if (step_ == kNone && time_ == kNone) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line 1: no column of steps or times is among ", absl::StrJoin(header_, ", "),
          "; say which one is: --step-field NAME or --time-field NAME. The first line "
          "must have the columns' names"));
    }
    if (time_ != kNone) time_field_.emplace(header_[time_], options_, &clock_);
    return absl::OkStatus();
  }

  absl::Status Add(const Fields& fields, absl::string_view where) {
    for (size_t column = 0; column < fields.size(); ++column) {
      if (column == step_ || column == time_) continue;
      if (absl::Status status = AddCell(column, fields[column], where); !status.ok()) return status;
    }
    std::optional<int64_t> step;
    if (step_ != kNone) step = ParseInteger(fields[step_]);
    std::optional<int64_t> time;
    absl::Status status;
    if (time_field_) {
      status = time_field_->Read(fields[time_], &time);
    } else if (step) {
      status = clock_.TimeOfStep(*step, &time);
    }
    if (!status.ok()) return status;
    return rows_.Finish(time, step, where);
  }

 private:
  absl::Status AddCell(size_t column, const std::string& text, absl::string_view where) {
    if (text.empty() || !options_.Wants(header_[column])) return absl::OkStatus();
    if (const auto value = ParseNumber(text)) return rows_.Add(header_[column], *value, where);
    sink_->AddSkipped(Skip::kNotNumber, 1, absl::StrCat(where, ", column ", header_[column]));
    return absl::OkStatus();
  }

  const Fields header_;
  const ReadOptions& options_;
  RecordSink* const sink_;
  AttemptCounter attempts_;
  RowMaker rows_;
  StepClock clock_;
  std::optional<TimeField> time_field_;
  size_t step_ = kNone;
  size_t time_ = kNone;
};

absl::Status CheckHeader(const Fields& header) {
  if (header.size() > kMaxColumns) {
    return absl::InvalidArgumentError(
        absl::StrCat("line 1 has ", header.size(), " columns; at most ", kMaxColumns, " are read"));
  }
  Fields sorted = header;
  std::sort(sorted.begin(), sorted.end());
  const bool has_name = std::any_of(sorted.begin(), sorted.end(),
                                    [](const std::string& name) { return !ParseNumber(name); });
  if (!has_name) {
    return absl::InvalidArgumentError(
        "line 1 has numbers where the columns' names are expected: put a line like step,loss,lr "
        "before it");
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("line 1 names the column '", *twice, "' twice: give each a name of its own"));
}

template <typename Table>
absl::Status ReadTable(CsvRecords& records, size_t columns, const ReadOptions& options,
                       Table& table, RecordSink* sink) {
  Fields fields;
  while (records.Next(&fields)) {
    const std::string where = LineText(records.line());
    absl::Status status;
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (fields.size() != columns) {
      status = absl::InvalidArgumentError(
          absl::StrCat("there are ", fields.size(), " fields where the first line has ", columns));
    } else {
      status = table.Add(fields, where);
    }
    if (!status.ok()) status = OnDamagedLine(status, where, options, sink);
    if (!status.ok()) return status;
  }
  return records.status();
}

char MostFrequentSeparator(absl::string_view line) {
  char best = ',';
  std::ptrdiff_t most = 0;
  for (const char separator : {',', '\t', ';'}) {
    const auto count = std::count(line.begin(), line.end(), separator);
    if (count > most) {
      best = separator;
      most = count;
    }
  }
  return best;
}

}  // namespace

absl::Status ReadCsv(OpenSource open, const ReadOptions& options, RecordSink* sink) {
  TACHO_ASSIGN_OR_RETURN(auto source, open());
  CsvRecords records(source.get());
  Fields header;
  if (!records.Next(&header)) {
    if (!records.status().ok()) return records.status();
    return absl::InvalidArgumentError("it is empty: a line with the columns' names is expected");
  }
  for (std::string& name : header) name = std::string(absl::StripAsciiWhitespace(name));
  TACHO_RETURN_IF_ERROR(CheckHeader(header));
  const size_t columns = header.size();
  if (LongTable::Fits(header)) {
    LongTable table(header, options, sink);
    return ReadTable(records, columns, options, table, sink);
  }
  WideTable table(std::move(header), options, sink);
  TACHO_RETURN_IF_ERROR(table.Begin());
  return ReadTable(records, columns, options, table, sink);
}

bool CsvRecords::Next(std::vector<std::string>* fields) {
  absl::string_view line;
  if (!status_.ok() || !lines_.Next(&line)) return false;
  line_ = lines_.number();
  if (separator_ == 0) separator_ = MostFrequentSeparator(line);
  if (line.find('\0') != absl::string_view::npos) {
    status_ = absl::InvalidArgumentError(absl::StrCat("line ", line_, " has zero bytes: no text"));
    return false;
  }
  if (SplitCsvRecord(line, separator_, fields)) return true;
  std::string record(line);
  while (lines_.Next(&line) && record.size() <= LineReader::kMaxLineBytes) {
    absl::StrAppend(&record, "\n", line);
    if (SplitCsvRecord(record, separator_, fields)) return true;
  }
  status_ = absl::InvalidArgumentError(
      absl::StrCat("line ", line_, ": a quoted field has no end; is the file cut off?"));
  return false;
}

bool SplitCsvRecord(absl::string_view record, char separator, std::vector<std::string>* fields) {
  fields->clear();
  std::string* field = &fields->emplace_back();
  bool quoted = false;
  for (size_t at = 0; at < record.size(); ++at) {
    const char c = record[at];
    if (quoted) {
      if (c != '"') {
        field->push_back(c);
      } else if (at + 1 < record.size() && record[at + 1] == '"') {
        field->push_back('"');
        ++at;
      } else {
        quoted = false;
      }
    } else if (c == '"' && field->empty()) {
      quoted = true;
    } else if (c == separator) {
      field = &fields->emplace_back();
    } else {
      field->push_back(c);
    }
  }
  return !quoted;
}

absl::Status CsvRecords::status() const { return status_.ok() ? lines_.status() : status_; }

}  // namespace tacho::importer
