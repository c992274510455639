// Commands about moments of a job: what happened to it, and where its values stopped being finite.

#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/samples.h"
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

int RunEvents(const Invocation& invocation) {
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
  RecordWriter writer(invocation, "events",
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
        for (const v1::RecordedEvent& event : response.events()) writer.Row(Row(event));
        any = any || !response.events().empty();
        invocation.env.out->flush();
        return invocation.env.out->good();
      });
  writer.Finish();
  if (!status.ok()) return JobCallError(invocation, client, request.job(), status);
  if (any) return kOk;
  *invocation.env.err << "tachoctl: no events match for job '" << Printable(request.job()) << "'\n";
  return kNothing;
}

constexpr uint64_t kMostSeries = 10'000;  // The collector's limit.

absl::StatusOr<v1::FirstNonFiniteRequest> ParseNonFiniteRequest(const Invocation& invocation) {
  const ParsedArgs& args = invocation.args;
  const std::vector<std::string>& operands = args.positionals();
  v1::FirstNonFiniteRequest request;
  v1::Selector& selector = *request.mutable_selector();
  selector.set_job(operands[0]);
  selector.mutable_metrics()->Assign(operands.begin() + 1, operands.end());
  const auto matchers = ParseMatchers(args);
  const auto time = ParseTimeRange(args, invocation.env.now, invocation.env.zone);
  const auto steps = ParseStepsFlag(args);
  const auto limit = ParseNumber(args, "limit", 1, kMostSeries);
  for (const absl::Status& status :
       {matchers.status(), time.status(), steps.status(), limit.status()}) {
    if (!status.ok()) return status;
  }
  selector.mutable_matchers()->Assign(matchers->begin(), matchers->end());
  if (*time) *request.mutable_time() = **time;
  if (*steps) *request.mutable_steps() = **steps;
  request.set_attempts(ParseAttempts(args));
  request.set_max_series(static_cast<uint32_t>(limit->value_or(0)));
  return request;
}

std::vector<Cell> Row(const v1::NonFinite& one) {
  const v1::SeriesInfo& series = one.series();
  return {UnixNs{one.time_unix_ns()},
          one.has_step() ? Cell(int64_t{one.step()}) : Cell(),
          series.metric().name(),
          series.has_task() ? Cell(uint64_t{series.task()}) : Cell(),
          series.host(),
          OwnLabelPairs(series),
          uint64_t{one.attempt()},
          one.value(),
          one.has_last_finite() ? Cell(one.last_finite()) : Cell(),
          one.has_last_finite_step() ? Cell(int64_t{one.last_finite_step()}) : Cell(),
          one.has_last_finite_unix_ns() ? Cell(UnixNs{one.last_finite_unix_ns()}) : Cell(),
          one.non_finite(),
          one.finite_after()};
}

// JSON and CSV get it on err, where it is not part of the document.
void PrintSummary(const Invocation& invocation, const v1::FirstNonFiniteResponse& answer) {
  const bool table = invocation.common.format == Format::kTable;
  if (!table && answer.series_turned() <= static_cast<uint64_t>(answer.spread_size())) return;
  std::ostream& out = table ? *invocation.env.out : *invocation.env.err;
  if (answer.series_turned() == 0) {
    out << "All finite: " << Count(answer.samples_examined(), "sample") << " of "
        << Thousands(answer.series_examined()) << " series\n";
    return;
  }
  out << (table ? "\n" : "tachoctl: ") << Thousands(answer.series_turned()) << " of "
      << Thousands(answer.series_examined()) << " series "
      << (answer.series_turned() == 1 ? "has" : "have") << " values that are NaN or infinite";
  if (answer.series_turned() > static_cast<uint64_t>(answer.spread_size())) {
    out << "; the first " << answer.spread_size() << " are listed; for more: --limit";
  }
  out << '\n';
}

int RunNonFinite(const Invocation& invocation) {
  const absl::StatusOr<v1::FirstNonFiniteRequest> request = ParseNonFiniteRequest(invocation);
  if (!request.ok()) {
    return UsageError(invocation.env, "nonfinite", std::string(request.status().message()));
  }
  const v1::Selector& selector = request->selector();
  QueryClient client = Connect(invocation);
  const auto answer = client.FirstNonFinite(*request);
  if (!answer.ok()) return JobCallError(invocation, client, selector.job(), answer.status());
  if (answer->series_examined() == 0) {
    if (!ReportUnknownMetrics(invocation, client, selector.job(),
                              {selector.metrics().begin(), selector.metrics().end()})) {
      *invocation.env.err << "tachoctl: no series matches; widen --match or --since\n";
    }
    return kNothing;
  }
  RecordWriter writer(invocation, "spread",
                      {{"time", "TIME", Kind::kTime},
                       {"step", "STEP", Kind::kNumber},
                       {"metric", "METRIC", Kind::kText},
                       {"task", "TASK", Kind::kNumber},
                       {"host", "HOST", Kind::kText},
                       {"labels", "", Kind::kMap},
                       {"attempt", "", Kind::kNumber},
                       {"value", "VALUE", Kind::kNumber},
                       {"last_finite", "LAST FINITE", Kind::kNumber},
                       {"last_finite_step", "", Kind::kNumber},
                       {"last_finite_time", "", Kind::kTime},
                       {"non_finite", "NON-FINITE", Kind::kNumber},
                       {"finite_after", "FINITE AFTER", Kind::kNumber}});
  for (const v1::NonFinite& one : answer->spread()) writer.Row(Row(one));
  writer.Finish();
  PrintSummary(invocation, *answer);
  return kOk;
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
  flags.push_back({.name = "newest", .placeholder = "N", .help = "Only the newest N events."});
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
          .run = RunEvents};
}

Command NonFiniteCommand() {
  std::vector<FlagSpec> flags = {MatchFlag()};
  flags.insert(flags.end(), TimeFlags().begin(), TimeFlags().end());
  flags.push_back(StepsFlag());
  flags.push_back(AttemptsFlag("all"));
  flags.push_back(
      {.name = "limit", .placeholder = "N", .help = "Only the first N series. Default: 100."});
  return {
      .name = "nonfinite",
      .group = CommandGroup::kHistory,
      .operands = "JOB [METRIC...]",
      .summary = "Find where values first became NaN or infinite, and how that spread",
      .details =
          R"(Lists each series that has such values with its first one, in the order of time: the first line is
where it began. FINITE AFTER 0 means that the series never recovered. The exit code is 0 whether or
not there are any.

Examples:
  tachoctl nonfinite bert-base
  tachoctl nonfinite bert-base loss grad_norm --steps 40000: --attempts effective

JSON: {"spread": [{"time", "time_unix_ns", "step" or null, "metric", "task" or null, "host",
  "labels": {}, "attempt", "value", "last_finite" or null, "last_finite_step" or null,
  "last_finite_time" or null, "last_finite_time_unix_ns" or null, "non_finite",
  "finite_after"}]}; values are "NaN", "Infinity" and "-Infinity".)",
      .flags = std::move(flags),
      .min_operands = 1,
      .max_operands = kAnyNumber,
      .run = RunNonFinite};
}

}  // namespace tacho::ctl
