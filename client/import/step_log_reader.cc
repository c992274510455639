#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/import/attempt_counter.h"
#include "client/import/readers.h"
#include "client/import/row_maker.h"
#include "client/import/values.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {

bool ParseStepLogLine(absl::string_view line, StepLogLine* parsed) {
  if (!absl::ConsumePrefix(&line, "step:") && !absl::ConsumePrefix(&line, "s:")) return false;
  const size_t end = std::min(line.find(' '), line.size());
  const absl::string_view step = line.substr(0, end).substr(0, line.find('/'));
  if (!absl::SimpleAtoi(step, &parsed->step)) return false;
  parsed->values.clear();
  for (absl::string_view field : absl::StrSplit(line.substr(end), ' ', absl::SkipEmpty())) {
    const size_t colon = field.rfind(':');
    if (colon == absl::string_view::npos || colon == 0) return false;
    parsed->values.push_back({field.substr(0, colon), field.substr(colon + 1)});
  }
  return true;
}

namespace {

// "340ms" is 340 of unit "ms".
absl::string_view TakeUnit(absl::string_view* text) {
  for (const absl::string_view unit : {"ms", "s"}) {
    absl::string_view number = *text;
    if (absl::ConsumeSuffix(&number, unit) && ParseNumber(number)) {
      *text = number;
      return unit;
    }
  }
  return "";
}

class StepLog {
 public:
  StepLog(const ReadOptions& options, RecordSink* sink)
      : options_(options),
        sink_(sink),
        attempts_(options, sink),
        rows_(options, &attempts_),
        clock_(options, sink) {}

  absl::Status Add(const StepLogLine& line, absl::string_view where) {
    std::optional<absl::Duration> elapsed;
    for (const StepLogValue& field : line.values) {
      absl::string_view text = field.text;
      const absl::string_view unit = TakeUnit(&text);
      const std::optional<double> value = ParseNumber(text);
      if (!value) {
        sink_->AddSkipped(Skip::kNotNumber, 1, absl::StrCat(where, ", ", field.name));
        continue;
      }
      if (field.name == "train_time" && *value >= 0 && *value < 1e12) {
        elapsed = unit == "ms" ? absl::Milliseconds(*value) : absl::Seconds(*value);
      }
      if (!options_.Wants(std::string(field.name))) continue;
      SeriesKey key = options_.Key(std::string(field.name));
      key.unit = std::string(unit);
      if (absl::Status status = rows_.Add(key, *value, where); !status.ok()) return status;
    }
    std::optional<int64_t> time;
    absl::Status status = elapsed && !options_.step_time ? clock_.TimeSinceStart(*elapsed, &time)
                                                         : clock_.TimeOfStep(line.step, &time);
    if (!status.ok()) return status;
    return rows_.Finish(time, line.step, where);
  }

 private:
  const ReadOptions& options_;
  RecordSink* const sink_;
  AttemptCounter attempts_;
  RowMaker rows_;
  StepClock clock_;
};

}  // namespace

absl::Status ReadStepLog(OpenSource open, const ReadOptions& options, RecordSink* sink) {
  TACHO_ASSIGN_OR_RETURN(auto source, open());
  LineReader lines(source.get());
  StepLog log(options, sink);
  StepLogLine parsed;
  absl::string_view line;
  uint64_t found = 0;
  while (lines.Next(&line)) {
    if (!ParseStepLogLine(line, &parsed)) continue;
    ++found;
    absl::Status status = log.Add(parsed, LineText(lines.number()));
    if (!status.ok()) return status;
  }
  if (!lines.status().ok()) return lines.status();
  if (found > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "no line is like 's:12 trl:3.31 lr:0.0018' or 'step:12/5000 val_loss:3.31'");
}

}  // namespace tacho::importer
