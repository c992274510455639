// 'attempts': each start of a job, in the three formats.
#include <map>

#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/ctl/views/job_status.h"

namespace tacho::ctl {
namespace {

std::string StepsText(const v1::Attempt& attempt) {
  if (!attempt.has_first_step()) return "";
  return absl::StrCat(attempt.first_step(), "..", attempt.last_step());
}

std::string EndText(const Environment& env, const v1::Attempt& attempt) {
  if (!attempt.has_ended_unix_ns()) return "";
  std::string text = ReadableTime(attempt.ended_unix_ns(), env.zone);
  if (!attempt.end_message().empty()) absl::StrAppend(&text, " ", attempt.end_message());
  for (const auto& [name, value] : std::map<std::string, std::string>(attempt.end_fields().begin(),
                                                                      attempt.end_fields().end())) {
    absl::StrAppend(&text, " ", name, "=", value);
  }
  return text;
}

std::string TimelineText(const v1::GetJobResponse& job) {
  std::string text;
  for (const v1::EffectiveSpan& span : job.timeline()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", span.first_step(), "..", span.last_step(),
                    " of attempt ", span.attempt());
  }
  return text;
}

void PrintTable(const Environment& env, const v1::GetJobResponse& job) {
  const std::string zone = ZoneName(env.now, env.zone);
  Table table({{"ATTEMPT", Align::kRight, false},
               {"STATE", Align::kLeft, false},
               {"STEPS", Align::kRight, false},
               {"SUPERSEDED", Align::kRight, true},
               {"TASKS", Align::kRight, false},
               {"HOSTS", Align::kRight, false},
               {absl::StrCat("FIRST SEEN (", zone, ")"), Align::kLeft, false},
               {"LAST SEEN", Align::kLeft, false},
               {"END", Align::kLeft, true}});
  for (const v1::Attempt& attempt : job.attempts()) {
    table.AddRow({absl::StrCat(attempt.attempt()), StateName(attempt.state()), StepsText(attempt),
                  StepRangesText(attempt.superseded()), absl::StrCat(attempt.tasks()),
                  absl::StrCat(attempt.hosts()),
                  ReadableTime(attempt.first_seen_unix_ns(), env.zone),
                  Age(attempt.last_seen_unix_ns(), env.now), EndText(env, attempt)});
  }
  table.Print(*env.out, env.width, env.unicode);
  const std::string timeline = TimelineText(job);
  if (!timeline.empty()) *env.out << "\nEffective steps: " << Printable(timeline) << "\n";
}

void PrintCsv(std::ostream& out, const v1::GetJobResponse& job) {
  out << CsvLine({"job", "attempt", "state", "first_step", "last_step", "superseded", "tasks",
                  "hosts", "first_seen", "first_seen_unix_ns", "last_seen", "last_seen_unix_ns",
                  "ended", "ended_unix_ns", "end_message"});
  for (const v1::Attempt& attempt : job.attempts()) {
    const bool ended = attempt.has_ended_unix_ns();
    out << CsvLine(
        {job.job().name(), absl::StrCat(attempt.attempt()), StateName(attempt.state()),
         attempt.has_first_step() ? absl::StrCat(attempt.first_step()) : "",
         attempt.has_last_step() ? absl::StrCat(attempt.last_step()) : "",
         StepRangesText(attempt.superseded()), absl::StrCat(attempt.tasks()),
         absl::StrCat(attempt.hosts()), ExactTime(attempt.first_seen_unix_ns()),
         absl::StrCat(attempt.first_seen_unix_ns()), ExactTime(attempt.last_seen_unix_ns()),
         absl::StrCat(attempt.last_seen_unix_ns()), ended ? ExactTime(attempt.ended_unix_ns()) : "",
         ended ? absl::StrCat(attempt.ended_unix_ns()) : "", attempt.end_message()});
  }
}

template <typename Map>
std::map<std::string, std::string> Sorted(const Map& map) {
  return {map.begin(), map.end()};
}

void WriteJson(const v1::Attempt& attempt, JsonWriter* json) {
  json->Field("attempt", attempt.attempt());
  json->Field("state", StateName(attempt.state()));
  json->Field("first_step", Maybe(attempt.has_first_step(), attempt.first_step()));
  json->Field("last_step", Maybe(attempt.has_last_step(), attempt.last_step()));
  json->Objects("superseded", attempt.superseded(), [&](const v1::StepRange& range) {
    json->Field("first_step", range.begin());
    json->Field("last_step", range.end());
  });
  json->Field("tasks", attempt.tasks());
  json->Field("hosts", attempt.hosts());
  json->TimeFields("first_seen",
                   Maybe(attempt.first_seen_unix_ns() != 0, attempt.first_seen_unix_ns()));
  json->TimeFields("last_seen",
                   Maybe(attempt.last_seen_unix_ns() != 0, attempt.last_seen_unix_ns()));
  json->Key("end");
  if (attempt.has_ended_unix_ns()) {
    json->Object([&] {
      json->TimeFields("time", attempt.ended_unix_ns());
      json->Field("message", attempt.end_message());
      json->Field("fields", Sorted(attempt.end_fields()));
    });
  } else {
    json->Null();
  }
  json->Field("attributes", Sorted(attempt.attributes()));
}

void PrintJson(std::ostream& out, const v1::GetJobResponse& job) {
  JsonWriter json(out);
  json.Object([&] {
    json.Field("job", job.job().name());
    json.Objects("attempts", job.attempts(),
                 [&](const v1::Attempt& attempt) { WriteJson(attempt, &json); });
    json.Objects("timeline", job.timeline(), [&](const v1::EffectiveSpan& span) {
      json.Field("first_step", span.first_step());
      json.Field("last_step", span.last_step());
      json.Field("attempt", span.attempt());
    });
  });
}

int RunAttempts(const Invocation& invocation) {
  const std::string& job = invocation.Positional(0);
  QueryClient client = Connect(invocation);
  const auto answer = client.GetJob(job);
  if (!answer.ok()) return JobCallError(invocation, client, job, answer.status());
  switch (invocation.common.format) {
    case Format::kJson:
      PrintJson(*invocation.env.out, *answer);
      break;
    case Format::kCsv:
      PrintCsv(*invocation.env.out, *answer);
      break;
    case Format::kTable:
      PrintTable(invocation.env, *answer);
      break;
  }
  return kOk;
}

}  // namespace

Command AttemptsCommand() {
  return {
      .name = "attempts",
      .group = CommandGroup::kNow,
      .operands = "JOB",
      .summary = "Show each start of a job, how it ended, and which steps ran twice",
      .details =
          R"(A restart from a checkpoint is a new attempt. If two attempts ran a step, the collector keeps both.
The effective one is that of the latest attempt that reached the step; earlier ones are superseded.
See --attempts of query, plot and compare.

Examples:
  tachoctl attempts bert-base
  tachoctl attempts bert-base -o json | jq '.timeline'

JSON: {"job", "attempts": [{"attempt", "state": "running"|"silent"|"ended"|"replaced",
  "first_step", "last_step", "superseded": [{"first_step", "last_step"}], "tasks", "hosts",
  first and last seen, "end": {"time", "time_unix_ns", "message", "fields": {}} or null,
  "attributes": {}}], "timeline": [{"first_step", "last_step", "attempt"}]})",
      .flags = {},
      .min_operands = 1,
      .max_operands = 1,
      .run = RunAttempts};
}

}  // namespace tacho::ctl
