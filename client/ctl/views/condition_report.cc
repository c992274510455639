#include "client/ctl/views/condition_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/condition_text.h"
#include "client/ctl/text/csv.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/ctl/text/time_format.h"
#include "client/ctl/text/wrap.h"

namespace tacho::ctl {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kNarrow = 60;  // Columns; below, step and place stand in lines of their own.

int64_t Since(const v1::Condition& condition) {
  return condition.since_unix_ns() != 0 ? condition.since_unix_ns() : condition.changed_unix_ns();
}

std::string StepText(const v1::Condition& condition) {
  return condition.has_step() ? absl::StrCat(condition.step()) : "";
}

// What stands in the line below: in a narrow table also what has no column there.
std::string Sentence(const v1::Condition& condition, bool narrow) {
  std::string text;
  if (narrow) {
    text = WhereText(condition);
    if (condition.has_step()) {
      absl::StrAppend(&text, text.empty() ? "step " : ", step ", condition.step());
    }
    if (!text.empty() && !condition.message().empty()) text += ": ";
  }
  return text + condition.message();
}

std::vector<TableColumn> Columns(const ConditionTable& table, bool narrow) {
  std::vector<TableColumn> columns;
  if (table.jobs) columns.push_back({"JOB", Align::kLeft, true});
  columns.push_back({"CONDITION", Align::kLeft, false});
  if (table.status) columns.push_back({"STATUS", Align::kLeft, false});
  columns.push_back({"SEVERITY", Align::kLeft, false});
  columns.push_back({"FOR", Align::kLeft, false});
  if (narrow) return columns;
  columns.push_back({"STEP", Align::kRight, false});
  columns.push_back({"WHERE", Align::kLeft, true});
  return columns;
}

std::vector<std::string> Cells(const v1::Condition& condition, const ConditionTable& table,
                               absl::Time now) {
  std::vector<std::string> cells;
  if (table.jobs) cells.push_back(condition.job());
  cells.push_back(condition.condition());
  if (table.status) cells.push_back(StatusName(condition.status()));
  cells.push_back(SeverityName(condition.severity()));
  cells.push_back(ConditionAge(condition, now));
  cells.push_back(StepText(condition));
  cells.push_back(WhereText(condition));
  return cells;
}

void WriteTime(JsonWriter* json, absl::string_view name, int64_t unix_ns) {
  json->TimeFields(name, unix_ns == 0 ? std::nullopt : std::optional(unix_ns));
}

void WriteText(JsonWriter* json, absl::string_view name, absl::string_view text) {
  json->Key(name);
  if (text.empty()) return json->Null();
  json->String(text);
}

void WriteOptional(JsonWriter* json, absl::string_view name, bool is_there, int64_t value) {
  json->Key(name);
  if (!is_there) return json->Null();
  json->Int(value);
}

void WriteFigures(JsonWriter* json, const v1::Condition& condition) {
  json->Key("figures");
  json->BeginArray();
  for (const v1::ConditionFigure& figure : condition.figures()) {
    json->BeginObject();
    json->Key("name");
    json->String(figure.name());
    json->Key("value");
    json->Double(figure.value());
    json->Key("unit");
    json->String(figure.unit());
    json->EndObject();
  }
  json->EndArray();
}

void WriteCulprits(JsonWriter* json, const v1::Condition& condition) {
  json->Key("culprits");
  json->BeginArray();
  for (const v1::ConditionCulprit& culprit : condition.culprits()) {
    json->BeginObject();
    WriteOptional(json, "task", culprit.has_task(), culprit.task());
    WriteText(json, "host", culprit.host());
    WriteText(json, "chip", culprit.chip());
    WriteText(json, "metric", culprit.metric());
    WriteOptional(json, "step", culprit.has_step(), culprit.step());
    json->Key("score");
    json->Double(culprit.score());
    json->EndObject();
  }
  json->EndArray();
}

}  // namespace

std::string ConditionAge(const v1::Condition& condition, absl::Time now) {
  const int64_t since = Since(condition);
  if (since == 0) return "";
  return ReadableDuration(std::max(absl::ZeroDuration(), now - absl::FromUnixNanos(since)));
}

void PrintConditions(const Environment& env, const std::vector<v1::Condition>& conditions,
                     const ConditionTable& table) {
  const bool narrow = env.width > 0 && env.width < kNarrow;
  const size_t room = env.width == 0 ? 0 : std::max(env.width, kIndent + 1) - kIndent;
  Table text(Columns(table, narrow));
  for (const v1::Condition& condition : conditions) {
    std::vector<std::string> cells = Cells(condition, table, env.now);
    if (narrow) cells.resize(cells.size() - 2);
    text.AddRow(std::move(cells));
    for (const std::string& line : Wrap(Sentence(condition, narrow), room)) {
      text.AddRemark(std::string(kIndent, ' ') + line);
    }
  }
  text.Print(*env.out, env.width, env.unicode);
}

void WriteCondition(JsonWriter* json, const v1::Condition& condition) {
  json->BeginObject();
  json->Key("job");
  json->String(condition.job());
  json->Key("attempt");
  json->Uint(condition.attempt());
  json->Key("condition");
  json->String(condition.condition());
  json->Key("status");
  json->String(StatusName(condition.status()));
  WriteText(json, "severity", SeverityName(condition.severity()));
  WriteText(json, "reason", condition.reason());
  WriteText(json, "message", condition.message());
  WriteTime(json, "since", condition.since_unix_ns());
  WriteTime(json, "changed", condition.changed_unix_ns());
  WriteTime(json, "judged", condition.judged_unix_ns());
  WriteOptional(json, "step", condition.has_step(), condition.step());
  WriteFigures(json, condition);
  WriteCulprits(json, condition);
  json->EndObject();
}

void WriteConditionsJson(std::ostream& out, const std::vector<v1::Condition>& conditions) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("conditions");
  json.BeginArray();
  for (const v1::Condition& condition : conditions) WriteCondition(&json, condition);
  json.EndArray();
  json.EndObject();
}

void WriteConditionsCsv(std::ostream& out, const std::vector<v1::Condition>& conditions) {
  out << CsvLine({"job", "attempt", "condition", "status", "severity", "reason", "since",
                  "since_unix_ns", "step", "host", "task", "chip", "metric", "culprits",
                  "message"});
  WriteConditionsCsvRows(out, conditions);
}

void WriteConditionsCsvRows(std::ostream& out, const std::vector<v1::Condition>& conditions) {
  for (const v1::Condition& condition : conditions) {
    const v1::ConditionCulprit first =
        condition.culprits().empty() ? v1::ConditionCulprit() : condition.culprits(0);
    const int64_t since = condition.since_unix_ns();
    out << CsvLine({condition.job(), absl::StrCat(condition.attempt()), condition.condition(),
                    StatusName(condition.status()), SeverityName(condition.severity()),
                    condition.reason(), since == 0 ? "" : ExactTime(since),
                    since == 0 ? "" : absl::StrCat(since), StepText(condition), first.host(),
                    first.has_task() ? absl::StrCat(first.task()) : "", first.chip(),
                    first.metric(), absl::StrCat(condition.culprits_size()), condition.message()});
  }
}

std::string ConditionLine(const v1::Condition& condition, absl::TimeZone zone) {
  const int64_t when =
      condition.changed_unix_ns() != 0 ? condition.changed_unix_ns() : condition.judged_unix_ns();
  std::string text = absl::StrCat(absl::FormatTime("%H:%M:%S", absl::FromUnixNanos(when), zone),
                                  " ", condition.job(), " ", condition.condition(), " ",
                                  Holds(condition) ? SeverityName(condition.severity())
                                  : condition.status() == v1::CONDITION_STATUS_FALSE ? "over"
                                                                                     : "unknown");
  if (Holds(condition) && condition.has_step()) {
    absl::StrAppend(&text, " step ", condition.step());
  }
  const std::string where = WhereText(condition);
  if (!where.empty()) absl::StrAppend(&text, " ", where);
  if (!condition.message().empty()) absl::StrAppend(&text, ": ", condition.message());
  return Printable(text);
}

std::string ConditionSummary(const v1::Condition& condition, absl::Time now) {
  std::string text = absl::StrCat(SeverityName(condition.severity()), " ", condition.condition());
  if (condition.has_step()) absl::StrAppend(&text, " at step ", condition.step());
  const std::string age = ConditionAge(condition, now);
  if (!age.empty()) absl::StrAppend(&text, ", for ", age);
  if (!condition.message().empty()) absl::StrAppend(&text, ": ", condition.message());
  return text;
}

}  // namespace tacho::ctl
