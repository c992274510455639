// Reads Megatron's golden values: an object of metrics, each an object of values by step. Older
// ones have a list of values, and averages beside the metrics.
#include <cmath>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "client/import/json_reader.h"
#include "client/import/readers.h"
#include "client/import/row_maker.h"
#include "client/import/values.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

// Seconds that a step took, as Megatron measures it.
constexpr absl::string_view kStepSeconds = "iteration-time";

// The average of the same in older files.
constexpr absl::string_view kStepSecondsAverage = "iteration_timing_avg";

// One value of one metric.
using Visit = absl::FunctionRef<absl::Status(const std::string& metric, int64_t step,
                                             const JsonMember& value, uint64_t line)>;

using VisitFact =
    absl::FunctionRef<absl::Status(const std::string& name, const std::string& value)>;

class GoldenValues {
 public:
  // `fact` receives numbers and texts that stand beside the metrics.
  GoldenValues(JsonReader* json, Visit visit, VisitFact fact)
      : json_(json), visit_(visit), fact_(fact) {}

  absl::Status Read() {
    JsonToken token;
    TACHO_RETURN_IF_ERROR(json_->Next(&token));
    if (token != JsonToken::kBeginObject) return NoGoldenValues();
    while (true) {
      TACHO_RETURN_IF_ERROR(json_->Next(&token));
      if (token != JsonToken::kKey) break;
      metric_ = json_->text();
      TACHO_RETURN_IF_ERROR(json_->Next(&token));
      if (token == JsonToken::kBeginObject) {
        TACHO_RETURN_IF_ERROR(ReadMetric());
        continue;
      }
      if (token == JsonToken::kNumber || token == JsonToken::kString) {
        TACHO_RETURN_IF_ERROR(fact_(metric_, json_->text()));
      }
      TACHO_RETURN_IF_ERROR(json_->SkipValue(token));
    }
    return seen_values_ ? json_->Next(&token) : NoGoldenValues();
  }

 private:
  absl::Status NoGoldenValues() {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", json_->line(),
                     ": this is no Megatron log; {\"lm loss\": {\"values\": {\"1\": 10.9, …}}, …} "
                     "is expected"));
  }

  absl::Status ReadMetric() {
    start_step_ = 0;
    step_interval_ = 1;
    JsonToken token;
    while (true) {
      TACHO_RETURN_IF_ERROR(json_->Next(&token));
      if (token != JsonToken::kKey) break;
      const std::string name = json_->text();
      TACHO_RETURN_IF_ERROR(json_->Next(&token));
      absl::Status status;
      if (name == "values" && token == JsonToken::kBeginObject) {
        status = ReadBySteps();
        seen_values_ = true;
      } else if (name == "values" && token == JsonToken::kBeginArray) {
        status = ReadList();
        seen_values_ = true;
      } else {
        const auto number = ParseInteger(json_->text());
        if (token == JsonToken::kNumber && number && name == "start_step") start_step_ = *number;
        if (token == JsonToken::kNumber && number && name == "step_interval") {
          step_interval_ = *number;
        }
        status = json_->SkipValue(token);
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadBySteps() {
    JsonToken token;
    while (true) {
      TACHO_RETURN_IF_ERROR(json_->Next(&token));
      if (token != JsonToken::kKey) return absl::OkStatus();
      const auto step = ParseInteger(json_->text());
      if (!step) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", json_->line(), ": '", json_->text(), "' is no step"));
      }
      TACHO_RETURN_IF_ERROR(json_->Next(&token));
      if (absl::Status status = VisitValue(*step, token); !status.ok()) return status;
    }
  }

  // Older ones have a list, a value every step_interval steps.
  absl::Status ReadList() {
    JsonToken token;
    for (int64_t step = start_step_;; step += step_interval_) {
      TACHO_RETURN_IF_ERROR(json_->Next(&token));
      if (token == JsonToken::kEndArray) return absl::OkStatus();
      if (absl::Status status = VisitValue(step, token); !status.ok()) return status;
    }
  }

  absl::Status VisitValue(int64_t step, JsonToken token) {
    const bool has_text = token == JsonToken::kNumber || token == JsonToken::kString;
    value_ = {metric_, token, has_text ? json_->text() : std::string()};
    TACHO_RETURN_IF_ERROR(visit_(metric_, step, value_, json_->line()));
    return json_->SkipValue(token);
  }

  JsonReader* const json_;
  const Visit visit_;
  const VisitFact fact_;
  bool seen_values_ = false;
  std::string metric_;
  JsonMember value_;
  int64_t start_step_ = 0;
  int64_t step_interval_ = 1;
};

absl::Status VisitFile(OpenSource open, Visit visit, VisitFact fact) {
  TACHO_ASSIGN_OR_RETURN(auto source, open());
  JsonReader json(source.get());
  return GoldenValues(&json, visit, fact).Read();
}

// The average of the step times in the file; nullopt if it has none.
absl::Status StepTimeHint(OpenSource open, std::optional<absl::Duration>* hint) {
  double sum = 0;
  int64_t count = 0;
  double average = 0;
  const auto is_time = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) && *value > 0;
  };
  absl::Status status = VisitFile(
      open,
      [&](const std::string& metric, int64_t, const JsonMember& member, uint64_t) {
        const auto value = metric == kStepSeconds ? ParseNumber(member.text) : std::nullopt;
        if (is_time(value)) {
          sum += *value;
          ++count;
        }
        return absl::OkStatus();
      },
      [&](const std::string& name, const std::string& text) {
        const auto value = name == kStepSecondsAverage ? ParseNumber(text) : std::nullopt;
        if (is_time(value)) average = *value;
        return absl::OkStatus();
      });
  if (count > 0) average = sum / static_cast<double>(count);
  // To the microsecond, so that a person can repeat it.
  if (average > 0) *hint = absl::Floor(absl::Seconds(average), absl::Microseconds(1));
  return status;
}

}  // namespace

absl::Status ReadMegatron(OpenSource open, const ReadOptions& options, RecordSink* sink) {
  std::optional<absl::Duration> hint;
  if (!options.step_time) {
    if (absl::Status status = StepTimeHint(open, &hint); !status.ok()) return status;
  }
  StepClock clock(options, sink, hint);
  RowMaker rows(options, sink);
  return VisitFile(
      open,
      [&](const std::string& metric, int64_t step, const JsonMember& value, uint64_t line) {
        if (!options.Wants(metric)) return absl::OkStatus();
        const std::string where = absl::StrCat(LineText(line), ", ", metric);
        TACHO_RETURN_IF_ERROR(rows.Add(value, where));
        std::optional<int64_t> time;
        TACHO_RETURN_IF_ERROR(clock.TimeOfStep(step, &time));
        return rows.Finish(time, step, where);
      },
      [&](const std::string& name, const std::string& text) {
        return sink->AddAttributes(options.attempt, name, text);
      });
}

}  // namespace tacho::importer
