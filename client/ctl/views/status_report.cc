// The answer of 'status' in the three formats.
#include "client/ctl/views/status_report.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/ctl/text/condition_text.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/ctl/views/condition_report.h"
#include "client/ctl/views/job_status.h"

namespace tacho::ctl {
namespace {

using State = JobStatus::State;

std::string SeenText(const Environment& env, int64_t unix_ns) {
  if (unix_ns == 0) return "never: no row of it was stored";
  return absl::StrCat(ReadableTime(unix_ns, env.zone), " ", ZoneName(env.now, env.zone), " (",
                      Age(unix_ns, env.now), ")");
}

std::string StateText(const Environment& env, const JobStatus& status) {
  const int64_t last_seen = status.job.job().last_seen_unix_ns();
  switch (status.state) {
    case State::kReporting:
      return absl::StrCat("reporting, last sample ", Age(last_seen, env.now));
    case State::kSilent:
      if (last_seen == 0 && status.job.job().refused_samples() > 0) {
        return "REFUSED: the collector stored no sample of this job";
      }
      if (last_seen == 0) return "SILENT, no sample yet";
      return absl::StrCat("SILENT for ", ReadableDuration(status.age), " (last sample ",
                          ReadableTime(last_seen, env.zone), ")");
    case State::kEnded:
      break;
  }
  const v1::RecordedEvent& event = *status.ended;
  return absl::StrCat("ended ", Age(event.time_unix_ns(), env.now),
                      event.message().empty() ? "" : ": ", event.message());
}

std::string ProgressText(const JobStatus& status) {
  const v1::Attempt* attempt = status.attempt();
  if (attempt == nullptr || !attempt->has_last_step()) return "";
  std::string text = absl::StrCat("step ", attempt->last_step());
  if (status.progress) {
    absl::StrAppend(&text, " of ", *status.planned_steps, " (", ShareText(*status.progress), ")");
  }
  if (status.steps_per_second) {
    absl::StrAppend(&text, ", ", ReadableNumber(*status.steps_per_second), " steps/s");
  }
  if (status.remaining) {
    absl::StrAppend(&text, ", about ", ReadableDuration(*status.remaining), " to go");
  }
  return text;
}

class Fields {
 public:
  explicit Fields(std::ostream& out) : out_(out) {}
  void Line(absl::string_view name, const std::string& text) {
    if (text.empty()) return;
    std::string left = absl::StrCat(name, ":");
    left.resize(std::max<size_t>(12, left.size() + 1), ' ');
    out_ << left << Printable(text) << '\n';
  }

 private:
  std::ostream& out_;
};

// Its attributes that are marks (proto/tacho/v1/marks.proto).
bool IsMarkAttribute(absl::string_view name) {
  return name == "group" || name == "note" || absl::StartsWith(name, "tag.");
}

std::string AttributesText(const v1::Attempt& attempt) {
  std::vector<std::pair<std::string, std::string>> sorted(attempt.attributes().begin(),
                                                          attempt.attributes().end());
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (const auto& [name, value] : sorted) {
    if (IsMarkAttribute(name)) continue;  // Shown above, as the job's.
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, "=", value);
  }
  return text;
}

// Steps that a later attempt took over; "" if there are none.
std::string RunAgainText(const v1::GetJobResponse& job) {
  std::string text;
  for (const v1::Attempt& attempt : job.attempts()) {
    if (attempt.superseded().empty()) continue;
    absl::StrAppend(&text, text.empty() ? "steps " : "; ", StepRangesText(attempt.superseded()),
                    " of attempt ", attempt.attempt());
  }
  return text;
}

// "" if nothing is judged.
std::string ConditionsText(const JobStatus& status) {
  if (!status.conditions) return "";
  const size_t holding = Holding(*status.conditions).size();
  const auto judged = static_cast<size_t>(
      std::count_if(status.conditions->begin(), status.conditions->end(),
                    [](const auto& one) { return one.status() != v1::CONDITION_STATUS_UNKNOWN; }));
  if (judged == 0) return "none can be judged yet";
  if (holding == 0 && judged == 1) return "none; 1 condition is judged";
  return absl::StrCat(holding == 0 ? "none" : absl::StrCat(holding), " of ",
                      Count(judged, "condition"), " that ", judged == 1 ? "is" : "are", " judged");
}

void PrintHeader(const Environment& env, const JobStatus& status) {
  const v1::Job& job = status.job.job();
  Fields fields(*env.out);
  fields.Line("job", job.name());
  fields.Line("state", StateText(env, status));
  fields.Line("progress", ProgressText(status));
  fields.Line("size", absl::StrCat(Count(job.tasks(), "task"), " on ", Count(job.hosts(), "host"),
                                   ", ", Count(job.attempts(), "attempt"), ", ",
                                   Thousands(job.series()), " series"));
  fields.Line("tags", absl::StrJoin(job.marks().tags(), ", "));
  fields.Line("group", job.marks().group());
  fields.Line("note", job.marks().note());
  fields.Line("conditions", ConditionsText(status));
  fields.Line("run again", RunAgainText(status.job));
  fields.Line("first seen", SeenText(env, job.first_seen_unix_ns()));
  fields.Line("last seen", SeenText(env, job.last_seen_unix_ns()));
  if (const v1::Attempt* attempt = status.attempt(); attempt != nullptr) {
    fields.Line("attributes", AttributesText(*attempt));
  }
  fields.Line("page", status.page_url);
}

// Prints what the collector did not take, and what to do about it.
void PrintRefusals(const Environment& env, const v1::GetJobResponse& job) {
  if (job.refusals().empty()) return;
  *env.out << "\nRefused since the collector's start:\n";
  for (const v1::JobRefusal& one : job.refusals()) {
    *env.out << "  "
             << Printable(absl::StrCat(Count(one.samples(), "sample"), " as ", one.reason(),
                                       ", last ", Age(one.last_unix_ns(), env.now), ", such as ",
                                       one.example()))
             << "\n    " << Printable(one.detail()) << '\n';
  }
}

bool IsBehind(const TaskStatus& task) { return task.behind_steps >= kBehindSteps; }

// The state of the whole job is said above: a task is marked only where it differs.
std::string MarkOf(const JobStatus& status, const TaskStatus& task) {
  if (task.silent && status.state == State::kReporting) return "SILENT";
  if (IsBehind(task)) return absl::StrCat("behind by ", task.behind_steps);
  return "";
}

std::vector<const TaskStatus*> TasksToShow(const JobStatus& status, size_t limit) {
  std::vector<const TaskStatus*> tasks;
  for (const TaskStatus& task : status.tasks) tasks.push_back(&task);
  if (limit == 0 || tasks.size() <= limit) return tasks;
  std::stable_sort(tasks.begin(), tasks.end(), [&](const TaskStatus* a, const TaskStatus* b) {
    return std::make_pair(a->silent, a->behind_steps) > std::make_pair(b->silent, b->behind_steps);
  });
  tasks.resize(limit);
  return tasks;
}

std::vector<std::string> ColumnOf(const std::vector<const TaskStatus*>& tasks,
                                  const std::string& metric) {
  std::vector<double> values;
  for (const TaskStatus* task : tasks) {
    const auto found = task->latest.find(metric);
    if (found != task->latest.end()) values.push_back(found->second.value());
  }
  const std::vector<std::string> texts = ReadableColumn(values);
  std::vector<std::string> cells;
  size_t next = 0;
  for (const TaskStatus* task : tasks) {
    cells.push_back(task->latest.count(metric) > 0 ? texts[next++] : "");
  }
  return cells;
}

void PrintTasks(const Environment& env, const JobStatus& status, size_t limit) {
  const std::vector<const TaskStatus*> tasks = TasksToShow(status, limit);
  std::vector<TableColumn> columns = {{"TASK", Align::kRight, false},
                                      {"HOST", Align::kLeft, true},
                                      {"ATTEMPT", Align::kRight, false},
                                      {"LAST STEP", Align::kRight, false},
                                      {"LAST SEEN", Align::kLeft, false}};
  std::vector<std::vector<std::string>> values;
  for (const std::string& metric : status.key_metrics) {
    columns.push_back({metric, Align::kRight, false});
    values.push_back(ColumnOf(tasks, metric));
  }
  columns.push_back({"", Align::kLeft, false});
  Table table(std::move(columns));
  for (size_t row = 0; row < tasks.size(); ++row) {
    const v1::Task& task = tasks[row]->task;
    std::vector<std::string> cells = {task.has_task() ? absl::StrCat(task.task()) : "-",
                                      task.host(), absl::StrCat(task.attempt()),
                                      task.has_last_step() ? absl::StrCat(task.last_step()) : "",
                                      Age(task.last_seen_unix_ns(), env.now)};
    for (const auto& column : values) cells.push_back(column[row]);
    cells.push_back(MarkOf(status, *tasks[row]));
    table.AddRow(std::move(cells));
  }
  *env.out << '\n';
  table.Print(*env.out, env.width, env.unicode);
  if (tasks.size() < status.tasks.size()) {
    *env.out << "\n"
             << Count(status.tasks.size() - tasks.size(), "more task")
             << ", none worse than these; to see all: --limit 0\n";
  }
}

const char* StateName(JobStatus::State state) {
  switch (state) {
    case JobStatus::State::kReporting:
      return "reporting";
    case JobStatus::State::kSilent:
      return "silent";
    case JobStatus::State::kEnded:
      break;
  }
  return "ended";
}

void WriteAttempt(const v1::Attempt& attempt, JsonWriter* json) {
  json->Field("attempt", attempt.attempt());
  json->TimeFields("first_seen",
                   Maybe(attempt.first_seen_unix_ns() != 0, attempt.first_seen_unix_ns()));
  json->TimeFields("last_seen",
                   Maybe(attempt.last_seen_unix_ns() != 0, attempt.last_seen_unix_ns()));
  json->Field("first_step", Maybe(attempt.has_first_step(), attempt.first_step()));
  json->Field("last_step", Maybe(attempt.has_last_step(), attempt.last_step()));
  json->Field("attributes", std::map<std::string, std::string>(attempt.attributes().begin(),
                                                               attempt.attributes().end()));
}

void WriteTask(const TaskStatus& one, JsonWriter* json) {
  const v1::Task& task = one.task;
  json->Field("task", Maybe(task.has_task(), task.task()));
  json->Field("host", task.host());
  json->Field("attempt", task.attempt());
  json->TimeFields("last_seen", Maybe(task.last_seen_unix_ns() != 0, task.last_seen_unix_ns()));
  json->Field("last_step", Maybe(task.has_last_step(), task.last_step()));
  json->Field("behind_steps", one.behind_steps);
  json->Field("silent", one.silent);
  json->Object("latest", [&] {
    for (const auto& [metric, latest] : one.latest) {
      const v1::LatestSample& sample = latest;
      json->Object(metric, [&] {
        json->Field("value", sample.value());
        json->TimeFields("time", sample.time_unix_ns());
        json->Field("step", Maybe(sample.has_step(), sample.step()));
      });
    }
  });
}

}  // namespace

void PrintStatus(const Environment& env, const JobStatus& status, size_t limit) {
  PrintHeader(env, status);
  PrintRefusals(env, status.job);
  if (status.conditions && !Holding(*status.conditions).empty()) {
    *env.out << '\n';
    PrintConditions(env, Holding(*status.conditions), {.jobs = false, .status = false});
  }
  if (!status.tasks.empty()) PrintTasks(env, status, limit);
}

const char* const kStatusJsonHelp =
    R"(JSON: {"job", "state": "reporting"|"silent"|"ended", "first_seen", "first_seen_unix_ns",
  "last_seen", "last_seen_unix_ns", "age_seconds", "last_step", "tasks", "hosts", "attempts",
  "series", "tags": [], "group", "note", "planned_steps", "progress", "steps_per_second",
  "remaining_seconds", "page_url": the job on the collector's page,
  "conditions": null or those that hold, as in 'tachoctl help conditions',
  "refused_samples", "refusals": [{"reason", "samples", "example", "detail", "last",
  "last_unix_ns"}] of samples that the collector refused since its start,
  "attempts_seen": [{"attempt", first and last seen and step, "attributes": {}}],
  "tasks_seen": [{"task", "host", "attempt", "last_seen", "last_seen_unix_ns", "last_step",
  "behind_steps", "silent", "latest": {METRIC: {"value", "time", "time_unix_ns", "step"}}}]}
Unknown values are null.)";

void WriteStatusJson(std::ostream& out, const JobStatus& status) {
  const v1::Job& job = status.job.job();
  const bool seen = job.last_seen_unix_ns() != 0;  // If not, none of its rows was stored.
  JsonWriter json(out);
  json.Object([&] {
    json.Field("job", job.name());
    json.Field("state", StateName(status.state));
    json.TimeFields("first_seen", Maybe(seen, job.first_seen_unix_ns()));
    json.TimeFields("last_seen", Maybe(seen, job.last_seen_unix_ns()));
    json.Field("age_seconds", Maybe(seen, absl::ToDoubleSeconds(status.age)));
    json.Field("last_step", Maybe(job.has_last_step(), job.last_step()));
    json.Field("tasks", job.tasks());
    json.Field("hosts", job.hosts());
    json.Field("attempts", job.attempts());
    json.Field("series", job.series());
    json.Field("tags", job.marks().tags());
    json.Field("group", MaybeText(job.marks().group()));
    json.Field("note", MaybeText(job.marks().note()));
    json.Field("planned_steps", status.planned_steps);
    json.Field("progress", status.progress);
    json.Field("steps_per_second", status.steps_per_second);
    json.Field("remaining_seconds", status.remaining
                                        ? std::optional(absl::ToDoubleSeconds(*status.remaining))
                                        : std::nullopt);
    json.Field("page_url", MaybeText(status.page_url));
    json.Key("conditions");
    if (status.conditions) {
      json.Array(Holding(*status.conditions), [&](const auto& one) { WriteCondition(&json, one); });
    } else {
      json.Null();
    }
    json.Field("refused_samples", job.refused_samples());
    json.Objects("refusals", status.job.refusals(), [&](const v1::JobRefusal& one) {
      json.Field("reason", one.reason());
      json.Field("samples", one.samples());
      json.Field("example", one.example());
      json.Field("detail", one.detail());
      json.TimeFields("last", one.last_unix_ns());
    });
    json.Objects("attempts_seen", status.job.attempts(),
                 [&](const v1::Attempt& attempt) { WriteAttempt(attempt, &json); });
    json.Objects("tasks_seen", status.tasks,
                 [&](const TaskStatus& task) { WriteTask(task, &json); });
  });
}

void WriteStatusCsv(std::ostream& out, const JobStatus& status) {
  out << CsvLine({"job", "state", "task", "host", "attempt", "last_seen", "last_seen_unix_ns",
                  "last_step", "behind_steps", "silent", "metric", "value"});
  for (const TaskStatus& one : status.tasks) {
    const v1::Task& task = one.task;
    std::vector<std::string> fields = {status.job.job().name(),
                                       StateName(status.state),
                                       task.has_task() ? absl::StrCat(task.task()) : "",
                                       task.host(),
                                       absl::StrCat(task.attempt()),
                                       ExactTime(task.last_seen_unix_ns()),
                                       absl::StrCat(task.last_seen_unix_ns()),
                                       task.has_last_step() ? absl::StrCat(task.last_step()) : "",
                                       absl::StrCat(one.behind_steps),
                                       one.silent ? "true" : "false",
                                       "",
                                       ""};
    for (const auto& [metric, sample] : one.latest) {
      fields[10] = metric;
      fields[11] = ExactNumber(sample.value());
      out << CsvLine(fields);
    }
    if (one.latest.empty()) out << CsvLine(fields);
  }
}

}  // namespace tacho::ctl
