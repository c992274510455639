#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/condition_text.h"
#include "client/ctl/text/csv.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/series_name.h"
#include "client/ctl/text/time_format.h"
#include "client/ctl/views/condition_report.h"
#include "client/ctl/views/status_report.h"

namespace tacho::ctl {
namespace {

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

class StatusDocument {
 public:
  explicit StatusDocument(std::ostream& out) : json_(out) {}

  void Write(const JobStatus& status) {
    json_.BeginObject();
    Job(status);
    Progress(status);
    Conditions(status);
    json_.Key("attempts_seen");
    json_.BeginArray();
    for (const v1::Attempt& attempt : status.job.attempts()) Attempt(attempt);
    json_.EndArray();
    json_.Key("tasks_seen");
    json_.BeginArray();
    for (const TaskStatus& task : status.tasks) Task(task);
    json_.EndArray();
    json_.EndObject();
  }

 private:
  void Job(const JobStatus& status) {
    const v1::Job& job = status.job.job();
    Text("job", job.name());
    Text("state", StateName(status.state));
    if (job.last_seen_unix_ns() == 0) {  // None of its rows was stored.
      json_.TimeFields("first_seen", std::nullopt);
      json_.TimeFields("last_seen", std::nullopt);
      json_.Key("age_seconds");
      json_.Null();
    } else {
      json_.TimeFields("first_seen", job.first_seen_unix_ns());
      json_.TimeFields("last_seen", job.last_seen_unix_ns());
      Number("age_seconds", absl::ToDoubleSeconds(status.age));
    }
    Step("last_step", job.has_last_step(), job.last_step());
    Uint("tasks", job.tasks());
    Uint("hosts", job.hosts());
    Uint("attempts", job.attempts());
    Uint("series", job.series());
  }

  void Progress(const JobStatus& status) {
    Step("planned_steps", status.planned_steps.has_value(), status.planned_steps.value_or(0));
    Optional("progress", status.progress);
    Optional("steps_per_second", status.steps_per_second);
    std::optional<double> remaining;
    if (status.remaining) remaining = absl::ToDoubleSeconds(*status.remaining);
    Optional("remaining_seconds", remaining);
  }

  void Conditions(const JobStatus& status) {
    json_.Key("conditions");
    if (!status.conditions) return json_.Null();
    json_.BeginArray();
    for (const v1::Condition& one : Holding(*status.conditions)) WriteCondition(&json_, one);
    json_.EndArray();
  }

  void Attempt(const v1::Attempt& attempt) {
    json_.BeginObject();
    Uint("attempt", attempt.attempt());
    json_.TimeFields("first_seen", attempt.first_seen_unix_ns());
    json_.TimeFields("last_seen", attempt.last_seen_unix_ns());
    Step("first_step", attempt.has_first_step(), attempt.first_step());
    Step("last_step", attempt.has_last_step(), attempt.last_step());
    json_.Key("attributes");
    json_.BeginObject();
    for (const auto& [name, value] : std::map<std::string, std::string>(
             attempt.attributes().begin(), attempt.attributes().end())) {
      Text(name, value);
    }
    json_.EndObject();
    json_.EndObject();
  }

  void Task(const TaskStatus& task) {
    json_.BeginObject();
    Step("task", task.task.has_task(), task.task.task());
    Text("host", task.task.host());
    Uint("attempt", task.task.attempt());
    json_.TimeFields("last_seen", task.task.last_seen_unix_ns());
    Step("last_step", task.task.has_last_step(), task.task.last_step());
    json_.Key("behind_steps");
    json_.Int(task.behind_steps);
    json_.Key("silent");
    json_.Bool(task.silent);
    json_.Key("latest");
    json_.BeginObject();
    for (const auto& [metric, sample] : task.latest) {
      json_.Key(metric);
      json_.BeginObject();
      Number("value", sample.value());
      json_.TimeFields("time", sample.time_unix_ns());
      Step("step", sample.has_step(), sample.step());
      json_.EndObject();
    }
    json_.EndObject();
    json_.EndObject();
  }

  void Text(const std::string& name, const std::string& value) {
    json_.Key(name);
    json_.String(value);
  }
  void Uint(const char* name, uint64_t value) {
    json_.Key(name);
    json_.Uint(value);
  }
  void Number(const char* name, double value) {
    json_.Key(name);
    json_.Double(value);
  }
  void Step(const char* name, bool is_there, int64_t value) {
    json_.Key(name);
    if (is_there) {
      json_.Int(value);
    } else {
      json_.Null();
    }
  }
  void Optional(const char* name, const std::optional<double>& value) {
    json_.Key(name);
    if (value) {
      json_.Double(*value);
    } else {
      json_.Null();
    }
  }

  JsonWriter json_;
};

}  // namespace

void WriteStatusJson(std::ostream& out, const JobStatus& status) {
  StatusDocument(out).Write(status);
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
