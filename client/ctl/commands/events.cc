#include "client/ctl/commands/commands.h"
#include "client/ctl/query_options.h"
#include "client/ctl/record_writer.h"
#include "client/ctl/text.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

std::vector<Cell> Row(const v1::RecordedEvent& event) {
  const v1::Source& source = event.source();
  return {UnixNs{event.time_unix_ns()},
          event.kind(),
          event.has_step() ? Cell(int64_t{event.step()}) : Cell(),
          source.has_task() ? Cell(uint64_t{source.task()}) : Cell(),
          source.host(),
          uint64_t{source.attempt()},
          event.message(),
          StringMap(event.fields().begin(), event.fields().end())};
}

int Run(const Invocation& invocation) {
  const auto time = ParseTimeRange(invocation.args, invocation.env.now, invocation.env.zone);
  if (!time.ok()) {
    return UsageError(invocation.env, "events", std::string(time.status().message()));
  }
  v1::ListEventsRequest request;
  request.set_job(invocation.Positional(0));
  if (*time) *request.mutable_time() = **time;
  request.set_kind(invocation.args.Get("kind").value_or(""));
  const auto writer = MakeRecordWriter(invocation, "events",
                                       {{"time", "TIME", Kind::kTime},
                                        {"kind", "KIND", Kind::kText},
                                        {"step", "STEP", Kind::kNumber},
                                        {"task", "TASK", Kind::kNumber},
                                        {"host", "HOST", Kind::kText},
                                        {"attempt", "ATTEMPT", Kind::kNumber},
                                        {"message", "MESSAGE", Kind::kText},
                                        {"fields", "FIELDS", Kind::kMap}});
  bool any = false;
  QueryClient client = invocation.Connect();
  const absl::Status status =
      client.ListEvents(request, [&](const v1::ListEventsResponse& response) {
        for (const v1::RecordedEvent& event : response.events()) writer->Row(Row(event));
        any = any || !response.events().empty();
        invocation.env.out->flush();
        return invocation.env.out->good();
      });
  writer->Finish();
  if (!status.ok()) return JobCallError(invocation, client, request.job(), status);
  if (any) return kOk;
  *invocation.env.err << "tachoctl: no events match for job '" << Printable(request.job()) << "'\n";
  return kNothing;
}

}  // namespace

Command EventsCommand() {
  std::vector<FlagSpec> flags = TimeFlags();
  flags.push_back(
      {.name = "kind",
       .placeholder = "KIND",
       .help = "Only this kind: attempt_started, checkpoint_saved, preempted, ended, …"});
  return {.name = "events",
          .operands = "JOB",
          .summary = "Show what happened to a job: starts, checkpoints, preemptions, its end",
          .details = R"(Examples:
  tachoctl events bert-base --since 1d
  tachoctl events bert-base --kind checkpoint_saved -o json

JSON: {"events": [{"time", "time_unix_ns", "kind", "step" or null, "task" or null, "host",
  "attempt", "message", "fields": {}}]})",
          .flags = std::move(flags),
          .min_operands = 1,
          .max_operands = 1,
          .run = Run};
}

}  // namespace tacho::ctl
