// The agents in the three formats. The table has what fits a terminal; JSON and CSV have
// everything.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/ctl/views/agent_status.h"

namespace tacho::ctl {
namespace {

constexpr size_t kRemarkIndent = 2;

const char* StateName(AgentStatus::State state) {
  switch (state) {
    case AgentStatus::State::kOk:
      return "ok";
    case AgentStatus::State::kFailing:
      return "failing";
    case AgentStatus::State::kSilent:
      break;
  }
  return "silent";
}

// "0-3,7".
std::string Ranges(std::vector<uint32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string text;
  for (size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", numbers[first]);
    if (last > first) absl::StrAppend(&text, "-", numbers[last]);
  }
  return text;
}

std::string TasksText(const AgentStatus& agent) {
  std::string text;
  for (const auto& [job, tasks] : agent.tasks) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", job, " ", Ranges(tasks));
  }
  return text;
}

std::string NumberText(const std::optional<uint64_t>& number) {
  return number ? Thousands(*number) : "";
}

std::string SourcesText(const AgentStatus& agent) {
  const size_t failing = agent.failing();
  if (failing == 0) return absl::StrCat(agent.sources.size(), " ok");
  return absl::StrCat(failing, " of ", agent.sources.size(), " fail", failing == 1 ? "s" : "");
}

// "tpu fails since 3m 20s, again in 12s: UNAVAILABLE: no libtpu …".
std::string FailureText(const SourceStatus& source, absl::Time now) {
  std::string text = absl::StrCat(source.name, " fails");
  if (source.since_unix_ns) {
    const absl::Duration age = now - absl::FromUnixNanos(*source.since_unix_ns);
    absl::StrAppend(&text, " for ", ReadableDuration(std::max(age, absl::ZeroDuration())));
  }
  if (source.retry_unix_ns) {
    const absl::Duration retry = absl::FromUnixNanos(*source.retry_unix_ns) - now;
    absl::StrAppend(&text, retry > absl::ZeroDuration()
                               ? absl::StrCat(", again in ", ReadableDuration(retry))
                               : ", again now");
  }
  for (const std::string& part : {source.code, source.reason}) {
    if (!part.empty()) absl::StrAppend(&text, ": ", part);
  }
  return text;
}

// Says what the owner of the samples can do.
absl::string_view RemedyFor(absl::string_view reason) {
  if (reason == "too_old") {
    return "older than the collector's storage.retention; raise it, or leave old files out";
  }
  if (reason == "future") return "ahead of the collector's clock; set the clock of this host";
  if (reason == "label_invalid") return "a name or text breaks a rule; the agent's log shows one";
  if (reason == "jobs_limit") return "the collector has limits.jobs jobs; raise it";
  if (absl::EndsWith(reason, "_limit")) return "see what has many series: tachoctl cardinality";
  return "the agent's log says more";
}

// "the collector refused 114,128 samples as too_old: older than …".
std::string RefusedText(const std::string& reason, uint64_t samples) {
  return absl::StrCat("the collector refused ", Count(samples, "sample"), " as ", reason, ": ",
                      RemedyFor(reason));
}

// "its clock is 2h ahead of the collector's; no time service keeps it".
std::string ClockText(const AgentStatus& agent) {
  const double seconds = agent.clock_offset_seconds.value_or(0);
  std::string text =
      absl::StrCat("its clock is ", ReadableDuration(absl::AbsDuration(absl::Seconds(seconds))),
                   seconds > 0 ? " ahead of" : " behind", " the collector's");
  if (agent.clock_synchronized == false) absl::StrAppend(&text, "; no time service keeps it");
  return text;
}

void WriteSource(const SourceStatus& source, JsonWriter* json) {
  json->Field("source", MaybeText(source.name));
  json->Field("state", source.failing ? "failing" : "ok");
  json->Field("code", MaybeText(source.code));
  json->Field("reason", MaybeText(source.reason));
  json->TimeFields("since", source.since_unix_ns);
  json->TimeFields("retry", source.retry_unix_ns);
  json->Field("polls", source.polls);
  json->Field("failures", source.failures);
  json->Field("lost_rows", source.lost_rows);
}

void WriteAgent(const AgentStatus& agent, JsonWriter* json) {
  json->Field("agent", MaybeText(agent.id));
  json->Field("host", MaybeText(agent.host));
  json->Field("version", MaybeText(agent.version));
  json->Field("state", StateName(agent.state));
  json->TimeFields("last_seen", agent.last_seen_unix_ns);
  json->Objects("jobs", agent.tasks, [&](const auto& job_and_tasks) {
    std::vector<uint32_t> tasks = job_and_tasks.second;
    std::sort(tasks.begin(), tasks.end());
    json->Field("job", MaybeText(job_and_tasks.first));
    json->Field("tasks", tasks);
  });
  json->Field("waiting_messages", agent.waiting_messages);
  json->Field("waiting_bytes", agent.waiting_bytes);
  json->Field("rows", agent.rows);
  json->Field("lost_rows", agent.lost_rows);
  json->Field("resident_bytes", agent.resident_bytes);
  json->Field("clock_offset_seconds", agent.clock_offset_seconds);
  json->Field("clock_uncertainty_seconds", agent.clock_uncertainty_seconds);
  json->Field("clock_synchronized", agent.clock_synchronized);
  json->Objects("refused", agent.refused, [&](const auto& reason_and_samples) {
    json->Field("reason", MaybeText(reason_and_samples.first));
    json->Field("samples", reason_and_samples.second);
  });
  json->Objects("sources", agent.sources,
                [&](const SourceStatus& source) { WriteSource(source, json); });
}

std::string CsvNumber(const std::optional<uint64_t>& number) {
  return number ? absl::StrCat(*number) : "";
}

void AppendTime(const std::optional<int64_t>& unix_ns, std::vector<std::string>* fields) {
  fields->push_back(unix_ns ? ExactTime(*unix_ns) : "");
  fields->push_back(unix_ns ? absl::StrCat(*unix_ns) : "");
}

void AppendClock(const AgentStatus& agent, std::vector<std::string>* fields) {
  for (const auto& seconds : {agent.clock_offset_seconds, agent.clock_uncertainty_seconds}) {
    fields->push_back(seconds ? absl::StrCat(*seconds) : "");
  }
}

std::vector<std::string> CsvFields(const AgentStatus& agent, const SourceStatus* source) {
  std::vector<std::string> fields = {agent.id, agent.host, agent.version, StateName(agent.state)};
  AppendTime(agent.last_seen_unix_ns, &fields);
  fields.push_back(TasksText(agent));
  for (const auto& number : {agent.waiting_messages, agent.waiting_bytes, agent.rows,
                             agent.lost_rows, agent.resident_bytes}) {
    fields.push_back(CsvNumber(number));
  }
  if (source == nullptr) {
    fields.resize(fields.size() + 8);
    AppendClock(agent, &fields);
    return fields;
  }
  fields.push_back(source->name);
  fields.emplace_back(source->failing ? "failing" : "ok");
  fields.push_back(source->code);
  fields.push_back(source->reason);
  AppendTime(source->since_unix_ns, &fields);
  AppendTime(source->retry_unix_ns, &fields);
  AppendClock(agent, &fields);
  return fields;
}

}  // namespace

void PrintAgents(const Environment& env, const std::vector<AgentStatus>& agents) {
  const bool ids = std::any_of(agents.begin(), agents.end(), [](const AgentStatus& agent) {
    return !agent.id.empty() && agent.id != agent.host;
  });
  std::vector<TableColumn> columns = {{"HOST", Align::kLeft, true}};
  if (ids) columns.push_back({"AGENT", Align::kLeft, true});
  columns.insert(columns.end(), {{"STATE", Align::kLeft, false},
                                 {"LAST SEEN", Align::kLeft, false},
                                 {"SOURCES", Align::kLeft, false},
                                 {"WAITING", Align::kRight, false},
                                 {"ROWS", Align::kRight, false},
                                 {"LOST", Align::kRight, false},
                                 {"TASKS", Align::kLeft, true}});
  const size_t room = env.width == 0 ? 0 : std::max(env.width, kRemarkIndent + 1) - kRemarkIndent;
  Table table(std::move(columns));
  for (const AgentStatus& agent : agents) {
    std::vector<std::string> cells = {agent.host};
    if (ids) cells.push_back(agent.id);
    cells.insert(cells.end(),
                 {StateName(agent.state), Age(agent.last_seen_unix_ns, env.now), SourcesText(agent),
                  NumberText(agent.waiting_messages), NumberText(agent.rows),
                  NumberText(agent.lost_rows), TasksText(agent)});
    table.AddRow(std::move(cells));
    const auto remark = [&](const std::string& text) {
      for (const std::string& line : Wrap(text, room)) {
        table.AddRemark(std::string(kRemarkIndent, ' ') + line);
      }
    };
    for (const SourceStatus& source : agent.sources) {
      if (source.failing) remark(FailureText(source, env.now));
    }
    if (agent.clock_is_off()) remark(ClockText(agent));
    for (const auto& [reason, samples] : agent.refused) remark(RefusedText(reason, samples));
  }
  table.Print(*env.out, env.width, env.unicode);
}

void WriteAgentsJson(std::ostream& out, const std::vector<AgentStatus>& agents) {
  JsonWriter json(out);
  json.Object([&] {
    json.Objects("agents", agents, [&](const AgentStatus& agent) { WriteAgent(agent, &json); });
  });
}

void WriteAgentsCsv(std::ostream& out, const std::vector<AgentStatus>& agents) {
  out << CsvLine({"agent",
                  "host",
                  "version",
                  "state",
                  "last_seen",
                  "last_seen_unix_ns",
                  "tasks",
                  "waiting_messages",
                  "waiting_bytes",
                  "rows",
                  "lost_rows",
                  "resident_bytes",
                  "source",
                  "source_state",
                  "code",
                  "reason",
                  "since",
                  "since_unix_ns",
                  "retry",
                  "retry_unix_ns",
                  "clock_offset_seconds",
                  "clock_uncertainty_seconds"});
  for (const AgentStatus& agent : agents) {
    if (agent.sources.empty()) out << CsvLine(CsvFields(agent, nullptr));
    for (const SourceStatus& source : agent.sources) out << CsvLine(CsvFields(agent, &source));
  }
}

}  // namespace tacho::ctl
