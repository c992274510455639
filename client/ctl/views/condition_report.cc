// Conditions in the three formats, for the commands that list them and for those that mention
// them.
#include "client/ctl/views/condition_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/condition_text.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

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

// The text below a row. In a narrow table it also has what lost its column.
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
  const auto time = [&](absl::string_view name, int64_t unix_ns) {
    json->TimeFields(name, Maybe(unix_ns != 0, unix_ns));
  };
  json->Object([&] {
    json->Field("job", condition.job());
    json->Field("attempt", condition.attempt());
    json->Field("condition", condition.condition());
    json->Field("status", StatusName(condition.status()));
    json->Field("severity", MaybeText(SeverityName(condition.severity())));
    json->Field("reason", MaybeText(condition.reason()));
    json->Field("message", MaybeText(condition.message()));
    time("since", condition.since_unix_ns());
    time("changed", condition.changed_unix_ns());
    time("judged", condition.judged_unix_ns());
    json->Field("step", Maybe(condition.has_step(), condition.step()));
    json->Objects("figures", condition.figures(), [&](const v1::ConditionFigure& figure) {
      json->Field("name", figure.name());
      json->Field("value", figure.value());
      json->Field("unit", figure.unit());
    });
    json->Objects("culprits", condition.culprits(), [&](const v1::ConditionCulprit& culprit) {
      json->Field("task", Maybe(culprit.has_task(), culprit.task()));
      json->Field("host", MaybeText(culprit.host()));
      json->Field("chip", MaybeText(culprit.chip()));
      json->Field("metric", MaybeText(culprit.metric()));
      json->Field("step", Maybe(culprit.has_step(), culprit.step()));
      json->Field("score", culprit.score());
    });
  });
}

void PrintProfiles(const Environment& env, const v1::ConditionsResponse& answer) {
  for (const v1::JobProfile& one : answer.profiles()) {
    std::string text = absl::StrCat(Printable(one.job()), ": profile ", Printable(one.profile()));
    if (one.automatic()) absl::StrAppend(&text, ", chosen by the collector");
    if (one.since_unix_ns() != 0) {
      const absl::Duration age = env.now - absl::FromUnixNanos(one.since_unix_ns());
      absl::StrAppend(&text, " ", ReadableDuration(std::max(absl::ZeroDuration(), age)), " ago");
    }
    absl::StrAppend(&text, ": ", Printable(one.reason()));
    for (const std::string& line : Wrap(text, env.width)) *env.out << line << '\n';
  }
}

void WriteConditionsJson(std::ostream& out, const std::vector<v1::Condition>& conditions,
                         const v1::ConditionsResponse& answer) {
  JsonWriter json(out);
  json.Object([&] {
    json.Array("conditions", conditions, [&](const auto& one) { WriteCondition(&json, one); });
    json.Objects("profiles", answer.profiles(), [&](const v1::JobProfile& one) {
      json.Field("job", one.job());
      json.Field("profile", one.profile());
      json.Field("automatic", one.automatic());
      json.Field("reason", one.reason());
      const int64_t since = one.since_unix_ns();
      json.TimeFields("since", Maybe(since != 0, since));
    });
  });
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
