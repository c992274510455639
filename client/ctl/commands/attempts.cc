#include <map>

#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/text/csv.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/ctl/text/time_format.h"
#include "client/ctl/views/job_state.h"

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

class AttemptsDocument {
 public:
  explicit AttemptsDocument(std::ostream& out) : json_(out) {}

  void Write(const v1::GetJobResponse& job) {
    json_.BeginObject();
    json_.Key("job");
    json_.String(job.job().name());
    json_.Key("attempts");
    json_.BeginArray();
    for (const v1::Attempt& attempt : job.attempts()) Attempt(attempt);
    json_.EndArray();
    json_.Key("timeline");
    json_.BeginArray();
    for (const v1::EffectiveSpan& span : job.timeline()) {
      Span(span.first_step(), span.last_step(), span.attempt());
    }
    json_.EndArray();
    json_.EndObject();
  }

 private:
  void Attempt(const v1::Attempt& attempt) {
    json_.BeginObject();
    Int("attempt", attempt.attempt());
    json_.Key("state");
    json_.String(StateName(attempt.state()));
    IntOrNull("first_step", attempt.has_first_step(), attempt.first_step());
    IntOrNull("last_step", attempt.has_last_step(), attempt.last_step());
    json_.Key("superseded");
    json_.BeginArray();
    for (const v1::StepRange& range : attempt.superseded()) {
      Span(range.begin(), range.end(), std::nullopt);
    }
    json_.EndArray();
    Int("tasks", attempt.tasks());
    Int("hosts", attempt.hosts());
    json_.TimeFields("first_seen", attempt.first_seen_unix_ns());
    json_.TimeFields("last_seen", attempt.last_seen_unix_ns());
    json_.Key("end");
    if (attempt.has_ended_unix_ns()) {
      json_.BeginObject();
      json_.TimeFields("time", attempt.ended_unix_ns());
      json_.Key("message");
      json_.String(attempt.end_message());
      Map("fields", {attempt.end_fields().begin(), attempt.end_fields().end()});
      json_.EndObject();
    } else {
      json_.Null();
    }
    Map("attributes", {attempt.attributes().begin(), attempt.attributes().end()});
    json_.EndObject();
  }

  void Span(int64_t first, int64_t last, std::optional<uint32_t> attempt) {
    json_.BeginObject();
    Int("first_step", first);
    Int("last_step", last);
    if (attempt) Int("attempt", *attempt);
    json_.EndObject();
  }

  void Map(const char* name, const std::map<std::string, std::string>& values) {
    json_.Key(name);
    json_.BeginObject();
    for (const auto& [key, value] : values) {
      json_.Key(key);
      json_.String(value);
    }
    json_.EndObject();
  }

  void Int(const char* name, int64_t value) {
    json_.Key(name);
    json_.Int(value);
  }
  void IntOrNull(const char* name, bool is_there, int64_t value) {
    json_.Key(name);
    if (is_there) {
      json_.Int(value);
    } else {
      json_.Null();
    }
  }

  JsonWriter json_;
};

int Run(const Invocation& invocation) {
  const std::string& job = invocation.Positional(0);
  QueryClient client = Connect(invocation);
  const auto answer = client.GetJob(job);
  if (!answer.ok()) return JobCallError(invocation, client, job, answer.status());
  switch (invocation.common.format) {
    case Format::kJson:
      AttemptsDocument(*invocation.env.out).Write(*answer);
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
      .summary = "Show how often a job was started, how each start ended, what was run twice",
      .details =
          R"(A restart from a checkpoint is a new attempt. Steps that two attempts ran are kept of both;
the effective steps are those of the latest attempt that reached them, and those of earlier ones
are superseded: see --attempts of query, plot and compare.

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
      .run = Run};
}

}  // namespace tacho::ctl
