// 'hang': what the tasks of a job do now, as their stacks show it, or did when it stalled.
#include <optional>
#include <string>
#include <vector>

#include "client/ctl/call/call_error.h"
#include "client/ctl/requests/core_states.h"
#include "client/ctl/requests/request_flags.h"
#include "client/ctl/requests/requests.h"
#include "client/ctl/requests/stack_report.h"
#include "client/ctl/text/text.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

constexpr absl::Duration kUsualPatience = absl::Seconds(10);

absl::StatusOr<v1::TakeStacksRequest> ParseStacksRequest(const Invocation& invocation) {
  v1::TakeStacksRequest request;
  request.set_job(invocation.Positional(0));
  TACHO_RETURN_IF_ERROR(AddTasks(invocation, &request));
  TACHO_ASSIGN_OR_RETURN(const uint32_t patience,
                         RequestMilliseconds(invocation, "wait", kUsualPatience));
  request.set_timeout_ms(patience);
  return request;
}

int ShowLast(const Invocation& invocation) {
  v1::ListEventsRequest request;
  request.set_job(invocation.Positional(0));
  request.set_kind("stacks_taken");
  request.set_newest(1);
  request.set_attempts(v1::ATTEMPTS_ALL);
  std::optional<v1::RecordedEvent> newest;
  QueryClient client = Connect(invocation);
  const absl::Status status =
      client.ListEvents(request, [&newest](const v1::ListEventsResponse& response) {
        if (!response.events().empty()) newest = *response.events().rbegin();
        return true;
      });
  if (!status.ok()) return JobCallError(invocation, client, request.job(), status);
  if (!newest.has_value()) {
    *invocation.env.err << "tachoctl: no stacks of '" << Printable(request.job())
                        << "' were taken: 'tachoctl hang JOB' takes them, and the collector by "
                           "itself with conditions.stacks: on_stall\n";
    return kNothing;
  }
  if (invocation.common.format == Format::kJson) {
    WriteStacksEventJson(*invocation.env.out, *newest);
  } else {
    PrintStacksEvent(invocation.env, *newest);
  }
  return kOk;
}

int RunHang(const Invocation& invocation) {
  if (invocation.args.Has("last")) return ShowLast(invocation);
  const auto request = ParseStacksRequest(invocation);
  if (!request.ok()) return UsageError(invocation.env, "hang", request.status().message());
  QueryClient client = Connect(invocation);
  const auto answer = client.TakeStacks(*request);
  if (!answer.ok()) return JobCallError(invocation, client, request->job(), answer.status());
  // Beside the stacks: a caller without the right to the hosts does without.
  const auto read = ReadCores(*answer, invocation.env.now, &client);
  const std::vector<CoreGroup> cores = read.ok() ? *read : std::vector<CoreGroup>();
  switch (invocation.common.format) {
    case Format::kJson:
      WriteStacksJson(*invocation.env.out, *answer, cores);
      break;
    case Format::kCsv:
      WriteStacksCsv(*invocation.env.out, *answer);
      break;
    case Format::kTable:
      PrintStacks(invocation.env, *answer);
      PrintCores(invocation.env, cores);
      break;
  }
  return answer->groups().empty() ? kNothing : kOk;
}

}  // namespace

Command HangCommand() {
  return {
      .name = "hang",
      .group = CommandGroup::kNow,
      .operands = "JOB",
      .summary = "Show what the tasks of a job do: their stacks, in groups of equal ones",
      .details =
          R"(Asks the agents of the job's hosts for the stacks of the trainers' main threads. Tasks with the same
stack make a group: in a hang most wait in one place, and a task in a small group is the one to look at.
Beside each group are the steps that its tasks reached and the phases they are in. The result is stored
as the event stacks_taken of the job; --last shows the newest one, without asking anybody.
If agents recorded the cores of the hosts' TPUs within 6 hours, these follow, in groups of equal ones.

A trainer shows its Python stack if it called tacho.init(stacks=True); else the agent can say only where
it waits in the kernel. docs/hang.md has the ways and what each costs.

If the collector asks for tokens, this needs one with the role admin and the right to the job; --last
needs the role read.

Examples:
  tachoctl hang bert-base
  tachoctl hang bert-base --task 17 --task 18
  tachoctl hang bert-base --last

JSON: {"job", "attempt", "taken", "taken_unix_ns",
  "groups": [{"tasks": "0-16,18", "origin": "python"|"command"|"kernel", "frames": [innermost first],
    "members": [{"task", "host", "pid", "step", "phase", "line", "state", "waits_in", "trouble"}]}],
  "absent": [{"task", "host", "reason"}],
  "cores": [{"type", "program", "program_counter",
    "members": [{"host", "core", "chip", "recorded", "recorded_unix_ns"}]}]}; with --last {"taken", "taken_unix_ns", "attempt", "cause",
  "message", "groups": [{"tasks", "frames"}]}. Unknown values are null. CSV has a line for each task.
The exit code is 1 if there is no stack at all.)",
      .flags = {{.name = "task",
                 .placeholder = "N",
                 .help = "Only this task. Repeat for more.",
                 .repeated = true},
                {.name = "wait",
                 .placeholder = "AGE",
                 .help = "How long agents may take; 10s unless given, at most 1m."},
                {.name = "last", .help = "Show the stacks that were taken last."}},
      .min_operands = 1,
      .max_operands = 1,
      .run = RunHang};
}

}  // namespace tacho::ctl
