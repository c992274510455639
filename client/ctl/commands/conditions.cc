// 'conditions': one answer, or with --watch the changes, over lost connections.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/call/watch_call.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/environment.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/text/condition_text.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/text.h"
#include "client/ctl/views/condition_report.h"
#include "proto/base/clock.h"

namespace tacho::ctl {
namespace {

constexpr absl::Duration kGlance = absl::Milliseconds(100);  // How soon Ctrl-C is noticed.
constexpr absl::Duration kSilence = absl::Seconds(45);       // The collector speaks every 15 s.
constexpr absl::Duration kPause = absl::Seconds(2);  // Before a lost collector is tried again.

struct ConditionsOptions {
  std::string job;  // Empty: `pattern`.
  std::string pattern;
  std::vector<std::string> conditions;
  v1::ConditionSeverity least = v1::CONDITION_SEVERITY_UNSPECIFIED;
  std::optional<v1::ConditionSeverity> fail_on;
  bool all = false;
  bool watch = false;
  absl::Duration length = absl::InfiniteDuration();
};

absl::StatusOr<ConditionsOptions> ParseOptions(const ParsedArgs& args) {
  ConditionsOptions options;
  if (!args.positionals().empty()) options.job = args.positionals()[0];
  options.pattern = args.Get("jobs").value_or("");
  if (!options.job.empty() && !options.pattern.empty()) {
    return absl::InvalidArgumentError("JOB and --jobs exclude each other: give one");
  }
  options.conditions = args.GetAll("condition");
  options.least = SeverityOf(args.Get("severity").value_or(""));
  if (const auto severity = args.Get("fail-on")) options.fail_on = SeverityOf(*severity);
  options.all = args.Has("all");
  options.watch = args.Has("watch");
  if (options.watch && options.fail_on) {
    return absl::InvalidArgumentError("--fail-on judges one answer, --watch never ends: give one");
  }
  if (const auto length = args.Get("for")) {
    if (!options.watch) return absl::InvalidArgumentError("--for needs --watch");
    const absl::StatusOr<absl::Duration> duration = ParseDuration(*length);
    if (!duration.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--for ", duration.status().message()));
    }
    options.length = *duration;
  }
  return options;
}

bool IsShown(const ConditionsOptions& options, const v1::Condition& condition) {
  if (!Holds(condition)) return options.all;
  return condition.severity() >= options.least;
}

// Prints a sentence in place of a table if no condition holds.
void PrintNone(const Invocation& invocation, const ConditionsOptions& options,
               const v1::ConditionsResponse& answer) {
  std::set<std::string> jobs;
  size_t judged = 0, unknown = 0;
  for (const v1::Condition& condition : answer.conditions()) {
    jobs.insert(condition.job());
    ++(condition.status() == v1::CONDITION_STATUS_UNKNOWN ? unknown : judged);
  }
  std::ostream& out = *invocation.env.out;
  if (judged == 0) {
    out << "No condition of " << Count(jobs.size(), "job") << " can be judged: --all says why\n";
    return;
  }
  out << "No condition" << (options.least > v1::CONDITION_SEVERITY_INFO ? " as severe" : "")
      << " holds: " << Count(judged, "condition") << " of " << Count(jobs.size(), "job")
      << (judged == 1 ? " is" : " are") << " judged";
  if (unknown > 0) out << "; " << unknown << " cannot be judged: --all says which";
  out << '\n';
}

void Show(const Invocation& invocation, const ConditionsOptions& options,
          const v1::ConditionsResponse& answer) {
  std::vector<v1::Condition> shown;
  for (const v1::Condition& condition : answer.conditions()) {
    if (IsShown(options, condition)) shown.push_back(condition);
  }
  SortConditions(&shown);
  switch (invocation.common.format) {
    case Format::kJson:
      return WriteConditionsJson(*invocation.env.out, shown, answer);
    case Format::kCsv:
      return WriteConditionsCsv(*invocation.env.out, shown);
    case Format::kTable:
      break;
  }
  if (shown.empty()) {
    PrintNone(invocation, options, answer);
  } else {
    PrintConditions(invocation.env, shown, {.jobs = options.job.empty(), .status = options.all});
  }
  // For many jobs it would be a page.
  if (!options.job.empty() || options.all) PrintProfiles(invocation.env, answer);
}

int Ask(const Invocation& invocation, const ConditionsOptions& options) {
  v1::ConditionsRequest request;
  request.set_job(options.job);
  request.set_job_pattern(options.pattern);
  request.mutable_conditions()->Assign(options.conditions.begin(), options.conditions.end());
  QueryClient client = Connect(invocation);
  const auto answer = client.Conditions(request);
  if (!answer.ok()) {
    if (options.job.empty()) return CallError(invocation, client, answer.status());
    return JobCallError(invocation, client, options.job, answer.status());
  }
  if (answer->conditions().empty()) {
    *invocation.env.err << "tachoctl: "
                        << (options.job.empty() ? "no job is" : Printable(options.job) + " is not")
                        << " judged: ended or silent for long, or conditions are switched off in "
                           "the collector's configuration\n";
    return kNothing;
  }
  Show(invocation, options, *answer);
  const bool fails = std::any_of(
      answer->conditions().begin(), answer->conditions().end(), [&](const v1::Condition& one) {
        return options.fail_on && Holds(one) && one.severity() >= *options.fail_on;
      });
  return fails ? kThreshold : kOk;
}

// Follows what changes; a collector that goes away is waited for.
class ConditionsWatcher {
 public:
  ConditionsWatcher(const Invocation& invocation, const ConditionsOptions& options)
      : invocation_(invocation),
        options_(options),
        client_(Connect(invocation)),
        end_(MonotonicNow() + options.length) {}

  int Run() {
    // With -o csv the headings come once, also if nothing ever holds.
    if (invocation_.common.format == Format::kCsv) WriteConditionsCsv(*invocation_.env.out, {});
    while (Continues()) {
      const absl::Status status = ReadCall();
      if (!Continues()) break;
      if (!IsPassing(status)) {
        return JobCallError(invocation_, client_, options_.job, status);
      }
      if (!std::exchange(lost_, true)) {
        *invocation_.env.err << "tachoctl: lost the collector: " << Printable(status.message())
                             << "; trying again\n";
      }
      const absl::Time again = MonotonicNow() + kPause;
      while (Continues() && MonotonicNow() < again) absl::SleepFor(kGlance);
    }
    return kOk;
  }

 private:
  bool Continues() const {
    return !interrupts_.came() && MonotonicNow() < end_ && invocation_.env.out->good();
  }

  // Errors that a new call may cure, once a call has worked. An error of the first call is final.
  bool IsPassing(const absl::Status& status) const {
    switch (status.code()) {
      case absl::StatusCode::kUnavailable:
      case absl::StatusCode::kCancelled:
      case absl::StatusCode::kResourceExhausted:
      case absl::StatusCode::kUnknown:
        return lived_;
      default:
        return false;
    }
  }

  absl::Status ReadCall() {
    v1::WatchConditionsRequest request;
    request.set_job(options_.job);
    request.set_job_pattern(options_.pattern);
    request.mutable_conditions()->Assign(options_.conditions.begin(), options_.conditions.end());
    if (!client_.setup().ok()) return client_.setup();
    const auto call = client_.WatchConditions(request);
    absl::Time heard = MonotonicNow();
    const absl::Duration patience = lived_ ? kSilence : invocation_.common.timeout;
    v1::WatchConditionsResponse message;
    while (Continues()) {
      switch (call->Next(&message, kGlance)) {
        case WatchConditionsCall::Result::kEnded: {
          absl::Status status = client_.EndOf(*call);
          return status.ok() ? absl::UnavailableError("it ended the call") : status;
        }
        case WatchConditionsCall::Result::kTimeout:
          if (MonotonicNow() - heard > patience) {
            return absl::UnavailableError("no sign of life from it");
          }
          break;
        case WatchConditionsCall::Result::kMessage:
          heard = MonotonicNow();
          lived_ = true;
          lost_ = false;
          for (const v1::Condition& condition : message.conditions()) Take(condition);
          *invocation_.env.out << std::flush;
          break;
      }
    }
    return absl::OkStatus();
  }

  // Reports a change once, even if a new call repeats it. A condition that never held is reported
  // only if all conditions are asked for.
  void Take(const v1::Condition& condition) {
    v1::Condition compared = condition;
    compared.clear_judged_unix_ns();
    compared.clear_figures();
    std::string text = compared.SerializeAsString();
    std::string& known = known_[{condition.job(), condition.condition()}];
    const bool held = std::exchange(held_[{condition.job(), condition.condition()}],
                                    Holds(condition) && IsShown(options_, condition));
    if (text == known) return;
    known = std::move(text);
    if (!held && !IsShown(options_, condition)) return;
    switch (invocation_.common.format) {
      case Format::kJson: {
        JsonWriter json(*invocation_.env.out, true);
        return WriteCondition(&json, condition);
      }
      case Format::kCsv:
        return WriteConditionsCsvRows(*invocation_.env.out, {condition});
      case Format::kTable:
        *invocation_.env.out << ConditionLine(condition, invocation_.env.zone) << '\n';
    }
  }

  const Invocation& invocation_;
  const ConditionsOptions& options_;
  const Interrupts interrupts_;
  QueryClient client_;
  const absl::Time end_;
  bool lived_ = false;
  bool lost_ = false;
  std::map<std::pair<std::string, std::string>, std::string> known_;  // By job and condition.
  std::map<std::pair<std::string, std::string>, bool> held_;          // And was reported.
};

int RunConditions(const Invocation& invocation) {
  const absl::StatusOr<ConditionsOptions> options = ParseOptions(invocation.args);
  if (!options.ok()) {
    return UsageError(invocation.env, "conditions", std::string(options.status().message()));
  }
  if (options->watch) return ConditionsWatcher(invocation, *options).Run();
  return Ask(invocation, *options);
}

}  // namespace

Command ConditionsCommand() {
  const std::vector<std::string> severities = {"info", "warning", "critical"};
  return {
      .name = "conditions",
      .group = CommandGroup::kNow,
      .operands = "[JOB]",
      .summary = "Show what is wrong with jobs: since when, at which step, on which host",
      .details =
          R"(Lists the conditions that the collector finds true, the most severe first. STEP is the first bad step,
FOR how long the condition has held, WHERE its worst culprit. docs/conditions.md defines each
condition. The exit code is 0 whether or not one holds; --fail-on makes it 4. With JOB or --all
it also says with which profile of settings each job is judged, and why.

Examples:
  tachoctl conditions
  tachoctl conditions bert-base --all
  tachoctl conditions --jobs 'bert-.*' --severity warning --condition Stalled
  tachoctl conditions bert-base --fail-on critical > /dev/null || kubectl delete job bert-base
  tachoctl conditions --watch -o json | jq -c 'select(.status == "true")'

JSON: {"conditions": [{"job", "attempt", "condition", "status": "true"|"false"|"unknown",
  "severity": "info"|"warning"|"critical" or null, "reason", "message", "since", "since_unix_ns",
  "changed", "changed_unix_ns", "judged", "judged_unix_ns", "step",
  "figures": [{"name", "value", "unit"}],
  "culprits": [{"task", "host", "chip", "metric", "step", "score"}]}],
  "profiles": [{"job", "profile": "fast"|"balanced"|"quiet", "automatic", "reason", "since",
  "since_unix_ns"}]}; with --watch a condition a line, without profiles.
CSV has the first culprit and the number of culprits. Unknown values are null.)",
      .flags = {{.name = "jobs",
                 .placeholder = "PATTERN",
                 .help = "Only jobs whose whole name matches this RE2 expression."},
                {.name = "condition",
                 .placeholder = "NAME",
                 .help = "Only this condition, like Stalled or Diverged. Repeat for more.",
                 .choices = ConditionNames(),
                 .repeated = true},
                {.name = "severity",
                 .placeholder = "LEVEL",
                 .help = "Only conditions of at least this severity: info, warning or critical.",
                 .choices = severities},
                {.name = "all", .help = "Also conditions that do not hold or cannot be judged."},
                {.name = "fail-on",
                 .placeholder = "LEVEL",
                 .help = "Exit with 4 if a condition of at least this severity holds.",
                 .choices = severities},
                {.name = "watch",
                 .help = "Print what holds, then a line for each change, until Ctrl-C."},
                {.name = "for",
                 .placeholder = "AGE",
                 .help = "With --watch: end after this time."}},
      .min_operands = 0,
      .max_operands = 1,
      .run = RunConditions};
}

}  // namespace tacho::ctl
