#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/text/condition_text.h"
#include "client/ctl/text/page_link.h"
#include "client/ctl/views/job_status.h"
#include "client/ctl/views/status_report.h"
#include "proto/base/task_end.h"

namespace tacho::ctl {
namespace {

constexpr size_t kTerminalTasks = 40;

// A job may run on thousands of hosts; 'query' shows what exceeds this.
constexpr size_t kLatestSamples = 100'000;

absl::Status ReadLatest(QueryClient& client, const std::string& job,
                        const std::vector<std::string>& metrics,
                        std::vector<v1::LatestSample>& latest) {
  if (metrics.empty()) return absl::OkStatus();
  v1::LatestRequest request;
  request.mutable_selector()->set_job(job);
  request.mutable_selector()->mutable_metrics()->Assign(metrics.begin(), metrics.end());
  return client.Latest(request, [&](const v1::LatestResponse& response) {
    latest.insert(latest.end(), response.samples().begin(), response.samples().end());
    return latest.size() < kLatestSamples;
  });
}

// A status is worth showing even without the job's end.
std::vector<v1::RecordedEvent> ReadEnded(QueryClient& client, const std::string& job) {
  v1::ListEventsRequest request;
  request.set_job(job);
  request.add_kinds(kEndedKind);
  request.add_kinds(kExitedKind);
  std::vector<v1::RecordedEvent> ended;
  const absl::Status status = client.ListEvents(request, [&](const auto& response) {
    // An older collector does not know `kinds`, and returns all events.
    for (const v1::RecordedEvent& event : response.events()) {
      if (IsEndKind(event.kind())) ended.push_back(event);
    }
    return true;
  });
  if (!status.ok()) ended.clear();
  return ended;
}

struct StatusOptions {
  absl::Duration silent_after;
  size_t limit = 0;
};

absl::StatusOr<StatusOptions> ParseOptions(const Invocation& invocation) {
  StatusOptions options;
  options.limit = invocation.env.out_is_terminal ? kTerminalTasks : 0;
  if (const auto limit = invocation.args.Get("limit");
      limit && !absl::SimpleAtoi(*limit, &options.limit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--limit '", *limit, "': expected a whole number, 0 for all"));
  }
  if (const auto silent = invocation.args.Get("silent-after")) {
    const absl::StatusOr<absl::Duration> duration = ParseDuration(*silent);
    if (!duration.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--silent-after ", duration.status().message()));
    }
    options.silent_after = *duration;
  }
  return options;
}

void Show(const Invocation& invocation, const JobStatus& status, size_t limit) {
  switch (invocation.common.format) {
    case Format::kJson:
      return WriteStatusJson(*invocation.env.out, status);
    case Format::kCsv:
      return WriteStatusCsv(*invocation.env.out, status);
    case Format::kTable:
      return PrintStatus(invocation.env, status, limit);
  }
}

int RunStatus(const Invocation& invocation) {
  const absl::StatusOr<StatusOptions> options = ParseOptions(invocation);
  if (!options.ok()) return UsageError(invocation.env, "status", options.status().message());
  const std::string& job = invocation.Positional(0);
  QueryClient client = Connect(invocation);
  const auto answer = client.GetJob(job);
  if (!answer.ok()) return JobCallError(invocation, client, job, answer.status());

  std::vector<std::string> metrics = invocation.args.GetAll("metric");
  if (metrics.empty()) {
    metrics = KeyMetrics(*answer);
  } else {
    ReportUnknownMetrics(invocation, client, job, metrics);
  }
  std::vector<v1::LatestSample> latest;
  if (const absl::Status status = ReadLatest(client, job, metrics, latest); !status.ok()) {
    return CallError(invocation, client, status);
  }
  const std::vector<v1::RecordedEvent> ended = ReadEnded(client, job);
  JobStatus status =
      AssessJob(*answer, metrics, latest, ended, invocation.env.now, options->silent_after);
  status.conditions = client.ConditionsOf(job);
  const auto holding =
      status.conditions ? Holding(*status.conditions) : std::vector<v1::Condition>();
  status.page_url =
      JobLink(client.PageUrl(), job, holding.empty() ? "" : holding.front().condition());
  Show(invocation, status, options->limit);
  return kOk;
}

}  // namespace

Command StatusCommand() {
  return {
      .name = "status",
      .group = CommandGroup::kNow,
      .operands = "JOB",
      .summary = "Show how a job is doing: progress, each task, which tasks are behind or silent",
      .details = absl::StrCat(
          R"(A job is silent when nothing came for five of its mean steps, and for at least a minute. Progress and
remaining time need the attribute planned_steps. Conditions that hold are listed above the tasks; for
all conditions: tachoctl conditions JOB --all.

Examples:
  tachoctl status bert-base
  tachoctl status bert-base --metric loss --metric accuracy
  watch -n 5 tachoctl status bert-base

)",
          kStatusJsonHelp),
      .flags = {{.name = "metric",
                 .placeholder = "NAME",
                 .help = "Show this metric of each task. Repeat for more. Default: those of loss, "
                         "learning_rate, grad_norm, step_time_seconds, examples_per_second "
                         "that the job has.",
                 .repeated = true},
                {.name = "silent-after",
                 .placeholder = "AGE",
                 .help = "How long without samples counts as silence, like 30s or 10m."},
                {.name = "limit",
                 .placeholder = "N",
                 .help = "Show at most N tasks in the table, the worst first; 0 for all. "
                         "Default: 40 on a terminal, else all."}},
      .min_operands = 1,
      .max_operands = 1,
      .run = RunStatus};
}

}  // namespace tacho::ctl
