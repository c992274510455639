// Reads the monitor.csv of Stable-Baselines and its predecessors:
//
//   #{"t_start": 1605543219.27, "env_id": "CartPole-v1"}
//   r,l,t
//   23.0,23,0.512
//
// A line is an episode: its reward r, its length l in steps of the environment, and the seconds t
// from t_start to its end. The step of a row is the sum of the lengths so far.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/import/attempt_counter.h"
#include "client/import/csv_reader.h"
#include "client/import/formats.h"
#include "client/import/json_reader.h"
#include "client/import/readers.h"
#include "client/import/row_maker.h"
#include "client/import/values.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

constexpr absl::string_view kLength = "l";
constexpr absl::string_view kSeconds = "t";
constexpr absl::string_view kStarted = "t_start";

class MonitorLog {
 public:
  MonitorLog(const ReadOptions& options, RecordSink* sink)
      : options_(options),
        sink_(sink),
        attempts_(options, sink),
        rows_(options, &attempts_),
        clock_(options, sink) {}

  absl::Status AddLine(absl::string_view line, const std::string& where) {
    if (line.empty()) return absl::OkStatus();
    if (absl::ConsumePrefix(&line, "#")) return BeginFile(line, where);
    std::vector<std::string> fields;
    if (!SplitCsvRecord(line, ',', &fields)) {
      return absl::InvalidArgumentError("a quoted field has no end");
    }
    if (columns_.empty()) return SetColumns(std::move(fields));
    if (fields == columns_) return absl::OkStatus();  // Again, of a file that was appended to.
    if (fields.size() != columns_.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there are ", fields.size(), " fields where the columns are ", columns_.size()));
    }
    return AddEpisode(fields, where);
  }

  absl::Status Finish() const {
    if (!columns_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "it has no line 'r,l,t' below '#{\"t_start\": …}': this is no monitor.csv");
  }

 private:
  absl::Status BeginFile(absl::string_view json, const std::string& where) {
    FlatObject header;
    TACHO_RETURN_IF_ERROR(header.Parse(json));
    if (last_) NextRun(where);
    start_.reset();
    for (const JsonMember& member : header.members()) {
      if (member.name == kStarted) {
        start_ = ParseTimeNs(member.text, TimeUnit::kSeconds, absl::UTCTimeZone());
      } else {
        TACHO_RETURN_IF_ERROR(attempts_.AddAttributes(options_.attempt, member.name, member.text));
      }
    }
    return absl::OkStatus();
  }

  void NextRun(const std::string& where) {
    attempts_.Begin(absl::StrCat(where, ": the times start again"));
    steps_ = 0;
    last_.reset();
  }

  absl::Status SetColumns(std::vector<std::string> fields) {
    columns_ = std::move(fields);
    length_ = Column(kLength);
    seconds_ = Column(kSeconds);
    if (length_ < columns_.size() && seconds_ < columns_.size()) return absl::OkStatus();
    columns_.clear();
    return absl::InvalidArgumentError("the columns r,l,t are expected");
  }

  size_t Column(absl::string_view name) const {
    return static_cast<size_t>(std::find(columns_.begin(), columns_.end(), name) -
                               columns_.begin());
  }

  absl::Status AddEpisode(const std::vector<std::string>& fields, const std::string& where) {
    const auto length = ParseInteger(fields[length_]);
    const auto elapsed = ParseTimeNs(fields[seconds_], TimeUnit::kSeconds, absl::UTCTimeZone());
    if (!length || *length < 0 || !elapsed) {
      return absl::InvalidArgumentError(
          "a length that is a whole number, and a time in seconds, are expected");
    }
    if (last_ && *elapsed < *last_) NextRun(where);
    last_ = elapsed;
    if (__builtin_add_overflow(steps_, *length, &steps_)) {
      steps_ = 0;
      return absl::InvalidArgumentError("the lengths sum up to more than 2^63");
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      TACHO_RETURN_IF_ERROR(AddCell(i, fields[i], where));
    }
    std::optional<int64_t> time;
    TACHO_RETURN_IF_ERROR(TimeOf(*elapsed, &time));
    return rows_.Finish(time, steps_, where);
  }

  absl::Status AddCell(size_t column, const std::string& text, absl::string_view where) {
    const std::string& name = columns_[column];
    if (column == seconds_ || text.empty() || !options_.Wants(name)) return absl::OkStatus();
    if (const auto value = ParseNumber(text)) return rows_.Add(name, *value, where);
    sink_->AddSkipped(Skip::kNotNumber, 1, absl::StrCat(where, ", column ", name));
    return absl::OkStatus();
  }

  absl::Status TimeOf(int64_t elapsed, std::optional<int64_t>* time) {
    if (!start_) return clock_.TimeSinceStart(absl::Nanoseconds(elapsed), time);
    if (elapsed <= std::numeric_limits<int64_t>::max() - *start_) *time = *start_ + elapsed;
    return absl::OkStatus();
  }

  const ReadOptions& options_;
  RecordSink* const sink_;
  AttemptCounter attempts_;
  RowMaker rows_;
  StepClock clock_;  // Where there is no t_start.
  std::vector<std::string> columns_;
  size_t length_ = 0;
  size_t seconds_ = 0;
  std::optional<int64_t> start_;  // ns.
  std::optional<int64_t> last_;   // The last episode's end, in ns since start_.
  int64_t steps_ = 0;
};

}  // namespace

bool IsMonitorHead(absl::string_view head) {
  if (!absl::ConsumePrefix(&head, "#{")) return false;
  const size_t end = head.find('\n');
  if (end == absl::string_view::npos) return false;
  const absl::string_view second = head.substr(end + 1, head.find('\n', end + 1) - end - 1);
  std::vector<std::string> columns;
  if (!SplitCsvRecord(absl::StripTrailingAsciiWhitespace(second), ',', &columns)) return false;
  const auto has = [&columns](absl::string_view name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  return has(kLength) && has(kSeconds);
}

absl::Status ReadMonitor(OpenSource open, const ReadOptions& options, RecordSink* sink) {
  TACHO_ASSIGN_OR_RETURN(auto source, open());
  LineReader lines(source.get());
  MonitorLog log(options, sink);
  absl::string_view line;
  while (lines.Next(&line)) {
    const std::string where = LineText(lines.number());
    absl::Status status = log.AddLine(absl::StripAsciiWhitespace(line), where);
    if (!status.ok()) status = OnDamagedLine(status, where, options, sink);
    if (!status.ok()) return status;
  }
  return lines.status().ok() ? log.Finish() : lines.status();
}

}  // namespace tacho::importer
