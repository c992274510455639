// 'export': copies a job into a writer of the chosen format. The file gets its name only when
// the collector's answer was complete.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/export/export_source.h"
#include "client/ctl/export/export_writer.h"
#include "client/ctl/line/environment.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/progress_line.h"
#include "client/ctl/text/text.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

absl::StatusOr<v1::ExportRequest> ParseExportRequest(const Invocation& invocation) {
  const ParsedArgs& args = invocation.args;
  v1::ExportRequest request;
  v1::Selector& selector = *request.mutable_selector();
  selector.set_job(args.positionals()[0]);
  selector.mutable_metrics()->Assign(args.positionals().begin() + 1, args.positionals().end());
  TACHO_ASSIGN_OR_RETURN(auto matchers, ParseMatchers(args));
  selector.mutable_matchers()->Assign(matchers.begin(), matchers.end());
  TACHO_ASSIGN_OR_RETURN(auto time, ParseTimeRange(args, invocation.env.now, invocation.env.zone));
  if (time) *request.mutable_time() = *time;
  if (const auto steps = args.Get("steps")) {
    auto range = ParseSteps(*steps);
    if (!range.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--steps ", range.status().message()));
    }
    *request.mutable_steps() = *std::move(range);
  }
  const std::string attempts = args.Get("attempts").value_or("all");
  request.set_attempts(attempts == "effective" ? v1::ATTEMPTS_EFFECTIVE
                       : attempts == "latest"  ? v1::ATTEMPTS_LATEST
                                               : v1::ATTEMPTS_ALL);
  return request;
}

// The file or the directory, and who writes to it.
struct Target {
  std::unique_ptr<OutputFile> file;
  std::unique_ptr<ExportWriter> writer;
};

absl::StatusOr<Target> OpenTarget(const Invocation& invocation) {
  const std::string format = invocation.args.Get("format").value_or("csv");
  const std::string path = invocation.args.Get("file").value_or("-");
  Target target;
  if (format == "tfevents") {
    if (path == "-") {
      return absl::InvalidArgumentError(
          "--format tfevents writes a directory: name it with -f DIR");
    }
    auto writer = MakeEventFilesExport(path);
    if (!writer.ok()) return writer.status();
    target.writer = *std::move(writer);
    return target;
  }
  if (path == "-") {
    target.file = OutputFile::To(invocation.env.out);
  } else {
    auto file = OutputFile::Create(path);
    if (!file.ok()) return file.status();
    target.file = *std::move(file);
  }
  target.writer = format == "jsonl"        ? MakeJsonLinesExport(target.file.get())
                  : format == "prometheus" ? MakeOpenMetricsExport(target.file.get())
                                           : MakeCsvExport(target.file.get());
  return target;
}

absl::Status Hand(const v1::ExportResponse& response, ExportWriter* writer) {
  switch (response.message_case()) {
    case v1::ExportResponse::kJob:
      return writer->Job(response.job());
    case v1::ExportResponse::kEvent:
      return writer->Event(response.event());
    case v1::ExportResponse::kSeries:
      return writer->Series(response.series());
    case v1::ExportResponse::kSamples:
      return writer->Samples(response.samples().points());
    case v1::ExportResponse::kEnd:
      return writer->Finish(response.end());
    case v1::ExportResponse::MESSAGE_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

// Prints on err, because out may have the export itself.
void Report(const Invocation& invocation, const v1::ExportEnd& end, const ExportWriter& writer) {
  std::ostream& err = *invocation.env.err;
  const std::string path = invocation.args.Get("file").value_or("-");
  if (path != "-") {
    err << "tachoctl: " << Count(end.samples(), "sample") << " of " << Thousands(end.series())
        << " series and " << Count(end.events(), "event") << " written to " << Printable(path)
        << "\n";
  }
  for (const std::string& loss : writer.Losses()) err << "tachoctl: " << Printable(loss) << "\n";
}

int RunExport(const Invocation& invocation) {
  const Environment& env = invocation.env;
  const auto request = ParseExportRequest(invocation);
  if (!request.ok()) return UsageError(env, "export", std::string(request.status().message()));
  const bool to_file = invocation.args.Get("file").value_or("-") != "-";
  // Created before any thread starts. Without a file, the reader of standard output notices a cut.
  std::optional<Interrupts> interrupts;
  if (to_file) interrupts.emplace();
  auto target = OpenTarget(invocation);
  if (!target.ok()) return UsageError(env, "export", std::string(target.status().message()));
  ProgressLine progress({.out = env.err, .is_terminal = env.err_is_terminal, .width = env.width});
  QueryClient client = Connect(invocation);
  v1::ExportEnd end;
  absl::Status of_writer;
  bool ended = false;
  uint64_t samples = 0;
  const absl::Status status = ReadExport(client, *request, [&](const v1::ExportResponse& response) {
    ended = ended || response.has_end();
    if (response.has_end()) end = response.end();
    samples += static_cast<uint64_t>(response.samples().points().values_size());
    if (env.err_is_terminal && to_file) {
      progress.Show(absl::StrCat("exporting, ", Thousands(samples), " samples"), 0, 0);
    }
    of_writer = interrupts && interrupts->came()
                    ? absl::AbortedError("it was interrupted; nothing was left behind")
                    : Hand(response, target->writer.get());
    return of_writer;
  });
  progress.Clear();
  if (absl::IsCancelled(of_writer)) return kOk;  // 'tachoctl export … | head'.
  if (!of_writer.ok()) {
    *env.err << "tachoctl: the export stopped: " << Printable(std::string(of_writer.message()))
             << "\n";
    return kNothing;
  }
  if (!status.ok()) return JobCallError(invocation, client, request->selector().job(), status);
  if (!ended) {
    *env.err
        << "tachoctl: the collector's answer ended too early; nothing was written. Try again\n";
    return kNothing;
  }
  Report(invocation, end, *target->writer);
  if (end.samples() > 0) return kOk;
  // Events belong to no metric: they are there also if its name is wrong.
  const auto& metrics = request->selector().metrics();
  const bool explained = ReportUnknownMetrics(invocation, client, request->selector().job(),
                                              {metrics.begin(), metrics.end()});
  if (!explained && end.events() > 0) return kOk;
  if (!explained) {
    *env.err << "tachoctl: no samples match; widen --since, --steps or --match\n";
  }
  return kNothing;
}

}  // namespace

Command ExportCommand() {
  std::vector<FlagSpec> flags = {
      {.name = "format",
       .placeholder = "FORMAT",
       .help = "csv, jsonl (everything: events and attributes too), tfevents (directories for "
               "TensorBoard) or prometheus (OpenMetrics for promtool). Default: csv.",
       .choices = {"csv", "jsonl", "tfevents", "prometheus"}},
      {.name = "file",
       .letter = 'f',
       .placeholder = "PATH",
       .help = "The file to write; for tfevents a directory. Default: standard output."},
      {.name = "attempts",
       .placeholder = "WHICH",
       .help = "all, effective (of each step the latest attempt) or latest. Default: all.",
       .choices = {"all", "effective", "latest"}},
      MatchFlag(),
      {.name = "steps",
       .placeholder = "A:B",
       .help = "Only these training steps, both included; A: and :B are open."}};
  flags.insert(flags.end(), TimeFlags().begin(), TimeFlags().end());
  return {.name = "export",
          .group = CommandGroup::kData,
          .operands = "JOB [METRIC...]",
          .summary = "Write a job's samples as CSV, JSON lines, event files or OpenMetrics",
          .details = R"(Examples:
  tachoctl export bert-base -f bert.csv
  tachoctl export bert-base --format jsonl -f bert.jsonl    a copy that 'import' can read
  tachoctl export bert-base --format tfevents -f logs && tensorboard --logdir logs
  tachoctl export bert-base loss --format prometheus -f bert.om
  promtool tsdb create-blocks-from openmetrics bert.om DATA

CSV: job, metric, type, unit, task, host, labels (JSON), attempt, time_unix_ns, step, value; CSV and
JSON lines read back bit for bit. A file appears complete or not at all; until then it is called
.NAME.PID.partial. The command reports and counts what a format cannot hold.)",
          .flags = std::move(flags),
          .min_operands = 1,
          .max_operands = kAnyNumber,
          .run = RunExport};
}

}  // namespace tacho::ctl
