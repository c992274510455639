// 'import': turns flags into options, runs the import and reports it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/text/text.h"
#include "client/ctl/views/import_run.h"
#include "client/import/formats.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

using importer::UnitOptions;

absl::Status Prefixed(absl::string_view flag, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", status.message()));
}

absl::Status ParseIdentity(const ParsedArgs& args, absl::string_view flag,
                           std::optional<uint32_t>* number) {
  const std::optional<std::string> text = args.Get(flag);
  if (!text) return absl::OkStatus();
  if (absl::SimpleAtoi(*text, &number->emplace())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " '", *text, "': expected a whole number, 0 or more"));
}

absl::Status ParseTimes(const Invocation& invocation, importer::ReadOptions* read) {
  const ParsedArgs& args = invocation.args;
  read->zone = invocation.env.zone;
  if (const auto start = args.Get("start")) {
    const auto time = ParseTime(*start, invocation.env.now, invocation.env.zone);
    if (!time.ok()) return Prefixed("start", time.status());
    read->start = *time;
  }
  if (const auto text = args.Get("step-time")) {
    const auto duration = ParseDuration(*text);
    if (!duration.ok()) return Prefixed("step-time", duration.status());
    read->step_time = *duration;
  }
  return absl::OkStatus();
}

absl::Status ParseUnits(const ParsedArgs& args, UnitOptions* units) {
  std::optional<uint32_t> task;
  std::optional<uint32_t> attempt;
  TACHO_RETURN_IF_ERROR(ParseIdentity(args, "task", &task));
  TACHO_RETURN_IF_ERROR(ParseIdentity(args, "attempt", &attempt));
  units->read.task = task.value_or(0);
  units->read.attempt = attempt.value_or(0);
  units->attempt_given = attempt.has_value();
  units->read.host = args.Get("host").value_or("imported");
  units->read.step_field = args.Get("step-field").value_or("");
  units->read.time_field = args.Get("time-field").value_or("");
  units->read.metrics = args.GetAll("metric");
  units->read.skip_damaged = args.Has("skip-damaged");
  units->run_pattern = args.Get("run-pattern").value_or("");
  const std::string each = args.Get("each").value_or("run");
  units->each = each == "task"      ? UnitOptions::Each::kTask
                : each == "attempt" ? UnitOptions::Each::kAttempt
                : each == "host"    ? UnitOptions::Each::kHost
                                    : UnitOptions::Each::kRun;
  return absl::OkStatus();
}

absl::StatusOr<ImportOptions> ParseOptions(const Invocation& invocation) {
  const ParsedArgs& args = invocation.args;
  ImportOptions options;
  options.job = args.Get("job").value_or("");
  if (options.job.empty()) {
    return absl::InvalidArgumentError("--job NAME is missing: name the job to import into");
  }
  constexpr size_t kMaxNameBytes = 256;  // tacho.v1.Source
  for (const char* flag : {"job", "host"}) {
    const std::string name = args.Get(flag).value_or("x");
    if (!name.empty() && name.size() <= kMaxNameBytes && Printable(name) == name) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", flag, ": expected a name of 1 to ",
                                                   kMaxNameBytes,
                                                   " bytes without control characters"));
  }
  const std::string& format = args.positionals()[0];
  options.units.format = importer::FormatOfName(format);
  if (!options.units.format && format != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("'", format, "' is not a format: expected auto, ",
                     absl::StrJoin(importer::FormatNames(), ", "), ", and then the files"));
  }
  options.paths.assign(args.positionals().begin() + 1, args.positionals().end());
  if (absl::Status status = ParseTimes(invocation, &options.units.read); !status.ok())
    return status;
  TACHO_RETURN_IF_ERROR(ParseUnits(args, &options.units));
  if (const auto text = args.Get("retry-for")) {
    const auto duration = ParseDuration(*text);
    if (!duration.ok()) return Prefixed("retry-for", duration.status());
    options.patience = *duration;
  }
  options.dry_run = args.Has("dry-run");
  options.agent_id = args.Get("agent-id").value_or("");
  options.address = invocation.common.address;
  options.security = invocation.common.security;
  return options;
}

int Fail(const Invocation& invocation, const Import& import, const absl::Status& status) {
  std::ostream& err = *invocation.env.err;
  const std::string text = Printable(std::string(status.message()));
  if (!import.sending) {
    err << "tachoctl: " << text << "\n";
    return absl::IsInvalidArgument(status) ? kUsage : kNothing;
  }
  if (!import.reached) {
    err << "tachoctl: cannot reach a collector at " << Printable(invocation.common.address) << ": "
        << text
        << "\nStart one with 'tacho-collector', or give its address: --address HOST:PORT, or "
        << "TACHO_ADDRESS in the environment.\n";
    return kUnreachable;
  }
  err << "tachoctl: the import stopped: " << text << "\n";
  if (absl::IsPermissionDenied(status)) {
    err << "A token for one agent_id needs --agent-id, and so does a second import of the same "
           "with another token; importing needs the role write.\n";
  }
  return kNothing;
}

int RunImport(const Invocation& invocation) {
  const Environment& env = invocation.env;
  const auto options = ParseOptions(invocation);
  if (!options.ok()) return UsageError(env, "import", std::string(options.status().message()));
  if (invocation.common.format == Format::kCsv) {
    return UsageError(env, "import", "--output csv: expected table or json");
  }
  ProgressLine progress({.out = env.err, .is_terminal = env.err_is_terminal, .width = env.width});
  Import import;
  const absl::Status status = RunImport(*options, &progress, &import);
  progress.Clear();
  if (!status.ok()) return Fail(invocation, import, status);
  ReportImport(invocation, *options, import);
  const ImportedUnit sum = import.Sum();
  if (sum.summary.messages == 0) {
    *env.err << "tachoctl: nothing to import: the files hold no sample, event or attribute\n";
    return kNothing;
  }
  return sum.refusals.refused.empty() ? kOk : kNothing;
}

std::vector<FlagSpec> Flags() {
  return {
      {.name = "job", .letter = 'j', .placeholder = "NAME", .help = "The name of the job."},
      {.name = "dry-run",
       .help = "Read everything and report what would be written, but write nothing."},
      {.name = "each",
       .placeholder = "WHAT",
       .help = "What each of several files or runs is: run (a label with its name, for event files "
               "that of an agent), task, attempt or host. Default: run.",
       .choices = {"run", "task", "attempt", "host"}},
      {.name = "run-pattern",
       .placeholder = "RE2",
       .help = "Only runs whose name matches, with the groups attempt, task or host: "
               "'(?P<attempt>\\d+)(/task-(?P<task>\\d+))?'."},
      {.name = "task", .placeholder = "N", .help = "The task, or the first one. Default: 0."},
      {.name = "attempt",
       .placeholder = "N",
       .help = "The attempt of everything, or with --each attempt the first one. Default: 0, and "
               "the next one wherever the steps of a file start again."},
      {.name = "host", .placeholder = "NAME", .help = "The host. Default: imported."},
      {.name = "start",
       .placeholder = "TIME",
       .help = "The time of step 0, for files without times: 2026-01-31T12:00:00Z, …"},
      {.name = "step-time",
       .placeholder = "AGE",
       .help = "How long a step took, for files without times: 850ms, 2s. Default: what the file "
               "says, else 1s."},
      {.name = "step-field",
       .placeholder = "NAME",
       .help = "CSV, JSON lines: the column or member with the step."},
      {.name = "time-field",
       .placeholder = "NAME",
       .help = "CSV, JSON lines: the column or member with the time."},
      {.name = "metric",
       .letter = 'm',
       .placeholder = "NAME",
       .help = "Only this metric. Repeat for more.",
       .repeated = true},
      {.name = "skip-damaged",
       .help = "Pass over damaged lines and records, and count them, instead of giving up."},
      {.name = "retry-for",
       .placeholder = "AGE",
       .help = "Give up when nothing could be stored for this long. Default: 5m."},
      {.name = "agent-id",
       .placeholder = "NAME",
       .help =
           "Who sends, where a token is for one agent_id only. Default: from what is imported."},
  };
}

}  // namespace

Command ImportCommand() {
  return {
      .name = "import",
      .group = CommandGroup::kData,
      .operands = "FORMAT|auto PATH...",
      .summary = "Import logs of other tools: event files, CSV, JSON lines, MLPerf, …",
      .details =
          R"(Formats: tfevents (event files), csv, jsonl, mlperf (:::MLLOG), hf (trainer_state.json,
all_results.json), megatron (golden values), nanogpt (lines 's:12 trl:3.31'), monitor (monitor.csv of
Stable-Baselines), nvidia-smi (its --format=csv), or auto, which recognises each file by its content.
A path may be a directory: its logs are found, and what is none is passed over and counted.

Examples:
  tachoctl import auto runs/bert --job bert --dry-run
  tachoctl import tfevents runs/ --job bert --each task
  tachoctl import nvidia-smi gpus.csv --job bert --host node-7
  tachoctl import csv loss.csv --job bert --step-field iteration --start 2026-01-31T12:00:00Z
  tachoctl import hf trainer_state.json --job mt5 --start 2024-05-18T11:00:00Z --step-time 1200ms

The command reads the files twice: first to check them and report what they hold, then to send it.
When it returns 0, everything is on the collector's disk. Running the same import again stores nothing
twice, and continues an import that was interrupted. Exit codes: 1 if the collector refused some of it
or there is nothing to import; 2 if a file or flag is wrong; 3 if no collector answers.)",
      .flags = Flags(),
      .min_operands = 2,
      .max_operands = kAnyNumber,
      .run = RunImport};
}

}  // namespace tacho::ctl
