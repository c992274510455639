#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/record_writer.h"
#include "client/ctl/text.h"
#include "client/ctl/time_parse.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

std::vector<Cell> Row(const v1::Job& job) {
  return {job.name(),
          uint64_t{job.tasks()},
          uint64_t{job.hosts()},
          uint64_t{job.attempts()},
          job.series(),
          job.has_last_step() ? Cell(int64_t{job.last_step()}) : Cell(),
          UnixNs{job.first_seen_unix_ns()},
          UnixNs{job.last_seen_unix_ns()}};
}

int Run(const Invocation& invocation) {
  v1::ListJobsRequest request;
  if (!invocation.args.positionals().empty()) request.set_name_pattern(invocation.Positional(0));
  if (const auto age = invocation.args.Get("seen")) {
    const absl::StatusOr<absl::Duration> duration = ParseDuration(*age);
    if (!duration.ok()) {
      return UsageError(invocation.env, "jobs",
                        absl::StrCat("--seen ", std::string(duration.status().message())));
    }
    request.set_seen_within_ns(absl::ToInt64Nanoseconds(*duration));
  }
  size_t limit = 0;
  if (const auto text = invocation.args.Get("limit"); text && !absl::SimpleAtoi(*text, &limit)) {
    return UsageError(invocation.env, "jobs",
                      absl::StrCat("--limit '", *text, "': expected a whole number, 0 for all"));
  }
  QueryClient client = invocation.Connect();
  const auto jobs = client.ListJobs(request, limit);
  if (!jobs.ok()) return CallError(invocation, client, jobs.status());

  const auto writer = MakeRecordWriter(invocation, "jobs",
                                       {{"job", "JOB", Kind::kText},
                                        {"tasks", "TASKS", Kind::kNumber},
                                        {"hosts", "HOSTS", Kind::kNumber},
                                        {"attempts", "ATTEMPTS", Kind::kNumber},
                                        {"series", "SERIES", Kind::kNumber},
                                        {"last_step", "LAST STEP", Kind::kNumber},
                                        {"first_seen", "FIRST SEEN", Kind::kTime},
                                        {"last_seen", "LAST SEEN", Kind::kAge}});
  for (const v1::Job& job : *jobs) writer->Row(Row(job));
  writer->Finish();
  if (!jobs->empty()) return kOk;
  *invocation.env.err << "tachoctl: "
                      << (request.name_pattern().empty() && request.seen_within_ns() == 0
                              ? "no jobs yet at "
                              : "no job matches at ")
                      << Printable(client.address()) << "\n";
  return kNothing;
}

}  // namespace

Command JobsCommand() {
  return {.name = "jobs",
          .operands = "[PATTERN]",
          .summary = "List jobs: those that report now by name, then the others",
          .details = R"(PATTERN is an RE2 expression that must match the whole name.

Examples:
  tachoctl jobs
  tachoctl jobs 'bert-.*' --seen 1h
  tachoctl jobs -o json | jq -r '.jobs[].job'

JSON: {"jobs": [{"job", "tasks", "hosts", "attempts", "series", "last_step" or null,
  "first_seen", "first_seen_unix_ns", "last_seen", "last_seen_unix_ns"}]})",
          .flags = {{.name = "seen",
                     .placeholder = "AGE",
                     .help = "Only jobs that reported within the last 10m, 2d, …"},
                    {.name = "limit", .placeholder = "N", .help = "At most N jobs; 0 for all."}},
          .min_operands = 0,
          .max_operands = 1,
          .run = Run};
}

}  // namespace tacho::ctl
