// The readers of the formats that can be imported. A reader reads whole files once from the
// beginning and passes what it finds to a sink, in an order that depends only on the files and the
// options. Files are untrusted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/import/input_file.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

// Opens the file again, so that a reader can read it twice.
using OpenSource = absl::FunctionRef<absl::StatusOr<std::unique_ptr<ByteSource>>()>;

// Each returns
//   INVALID_ARGUMENT  the file breaks its format, or a flag is missing; the text names the line or
//                     record and what to do, but not the file.
//   others            from the file or the sink.
// Lines are at most LineReader::kMaxLineBytes long; JsonReader bounds JSON.

// CSV whose first line names the columns: one for each metric, one of steps and one of times; or
// the output of 'tachoctl export --format csv' and 'tachoctl query -o csv', with a line for each
// sample.
absl::Status ReadCsv(OpenSource open, const ReadOptions& options, RecordSink* sink);
// One JSON object a line, with a member for each metric; or the output of 'tachoctl export --format
// jsonl'.
absl::Status ReadJsonLines(OpenSource open, const ReadOptions& options, RecordSink* sink);
// MLPerf logs: lines with ":::MLLOG {…}" among others.
inline constexpr absl::string_view kMlperfMark = ":::MLLOG";
absl::Status ReadMlperfLog(OpenSource open, const ReadOptions& options, RecordSink* sink);
// Hugging Face's trainer_state.json, or its all_results.json.
absl::Status ReadTrainerState(OpenSource open, const ReadOptions& options, RecordSink* sink);
// Megatron's golden values: {"lm loss": {"values": {"1": 10.9, …}}, …}.
absl::Status ReadMegatron(OpenSource open, const ReadOptions& options, RecordSink* sink);
// Lines like "s:12 trl:3.31 lr:0.0018" and "step:12/5000 val_loss:3.31 train_time:340ms".
absl::Status ReadStepLog(OpenSource open, const ReadOptions& options, RecordSink* sink);
// The monitor.csv of Stable-Baselines: '#{"t_start": …}', 'r,l,t', a line for each episode.
absl::Status ReadMonitor(OpenSource open, const ReadOptions& options, RecordSink* sink);
// Reads what 'nvidia-smi --query-gpu=timestamp,index,… --format=csv' prints.
absl::Status ReadSmi(OpenSource open, const ReadOptions& options, RecordSink* sink);

// The event files of one run, in the order of their names. Repeated steps at the beginning of a
// file are a new attempt, as the agent counts them, unless options.fixed_attempt.
absl::Status ReadEventFiles(const std::vector<std::string>& paths, const ReadOptions& options,
                            absl::FunctionRef<void(uint64_t bytes)> progress, RecordSink* sink);

struct StepLogValue {
  absl::string_view name;
  absl::string_view text;  // With its unit, if it has one.
};

struct StepLogLine {
  int64_t step = 0;
  std::vector<StepLogValue> values;  // Views into the line.
};

// "s:12 trl:3.31 lr:0.0018", "step:12/5000 val_loss:3.31 train_time:340ms". False if it is another
// line.
bool ParseStepLogLine(absl::string_view line, StepLogLine* parsed);

}  // namespace tacho::importer
