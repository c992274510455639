#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

constexpr uint64_t kMostEvents = 1'000'000;

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
  const std::vector<std::string> kinds = invocation.args.GetAll("kind");
  if (kinds.size() == 1) request.set_kind(kinds[0]);
  if (kinds.size() > 1) request.mutable_kinds()->Assign(kinds.begin(), kinds.end());
  const auto steps = ParseStepsFlag(invocation.args);
  const auto newest = ParseNumber(invocation.args, "newest", 1, kMostEvents);
  for (const absl::Status& parsed : {steps.status(), newest.status()}) {
    if (!parsed.ok()) return UsageError(invocation.env, "events", std::string(parsed.message()));
  }
  if (*steps) *request.mutable_steps() = **steps;
  request.set_newest(static_cast<uint32_t>(newest->value_or(0)));
  request.set_attempts(ParseAttempts(invocation.args));
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
  QueryClient client = Connect(invocation);
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
       .help = "Only this kind: attempt_started, checkpoint_saved, preempted, ended, … Repeat for "
               "more kinds.",
       .repeated = true});
  flags.push_back(StepsFlag());
  flags.push_back(AttemptsFlag("all"));
  flags.push_back({.name = "newest", .placeholder = "N", .help = "At most N, the newest."});
  return {.name = "events",
          .group = CommandGroup::kHistory,
          .operands = "JOB",
          .summary = "Show what happened to a job: starts, checkpoints, preemptions, its end",
          .details = R"(Examples:
  tachoctl events bert-base --since 1d
  tachoctl events bert-base --kind checkpoint_saved -o json
  tachoctl events bert-base --kind preempted --kind ended --newest 5

JSON: {"events": [{"time", "time_unix_ns", "kind", "step" or null, "task" or null, "host",
  "attempt", "message", "fields": {}}]})",
          .flags = std::move(flags),
          .min_operands = 1,
          .max_operands = 1,
          .run = Run};
}

}  // namespace tacho::ctl
