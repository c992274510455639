#include "server/conditions/condition_events.h"

#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "server/conditions/window/finding.h"

namespace tacho::server::conditions {
namespace {

constexpr size_t kMaxEventsRead = 10'000;
constexpr char kFigurePrefix[] = "figure.";

using Fields = std::map<std::string, std::string>;

void Set(const char* name, std::string value, Fields* fields) {
  if (!value.empty()) (*fields)[name] = std::move(value);
}

std::string Get(const Fields& fields, const char* name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "" : found->second;
}

void AddCulprit(const Finding& finding, Fields* fields) {
  if (finding.culprits.empty()) return;
  const Culprit& first = finding.culprits.front();
  if (first.task) Set("task", absl::StrCat(*first.task), fields);
  Set("host", first.host, fields);
  Set("chip", first.chip, fields);
  Set("metric", first.metric, fields);
  Set("culprits", absl::StrCat(finding.culprits.size()), fields);
}

Finding FindingOf(const storage::Event& event) {
  Finding finding;
  finding.judged = finding.present = true;
  finding.severity = ParseSeverity(Get(event.fields, "severity")).value_or(Severity::kWarning);
  finding.reason = Get(event.fields, "reason");
  finding.message = event.message;
  finding.step = event.step;
  for (const auto& [name, value] : event.fields) {
    absl::string_view figure = name;
    double number = 0;
    if (absl::ConsumePrefix(&figure, kFigurePrefix) && absl::SimpleAtod(value, &number)) {
      finding.figures.push_back({std::string(figure), number, ""});
    }
  }
  if (Get(event.fields, "culprits").empty()) return finding;
  Culprit culprit;
  uint32_t task = 0;
  if (absl::SimpleAtoi(Get(event.fields, "task"), &task)) culprit.task = task;
  culprit.host = Get(event.fields, "host");
  culprit.chip = Get(event.fields, "chip");
  culprit.metric = Get(event.fields, "metric");
  culprit.step = event.step;
  finding.culprits.push_back(std::move(culprit));
  return finding;
}

// `event` is of the kind kConditionRaised.
OpenCondition OpenOf(const storage::Event& event) {
  OpenCondition condition;
  condition.finding = FindingOf(event);
  condition.attempt = event.source.attempt;
  condition.changed_ns = event.time_ns;
  if (!absl::SimpleAtoi(Get(event.fields, "since_unix_ns"), &condition.since_ns)) {
    condition.since_ns = event.time_ns;
  }
  return condition;
}

}  // namespace

storage::Event ToEvent(const JudgedCondition& condition) {
  const bool raised = condition.status == ConditionStatus::kTrue;
  storage::Event event;
  event.source.job = condition.job;
  event.source.attempt = condition.attempt;
  event.time_ns = condition.changed_ns;
  event.step = condition.finding.step;
  event.kind = raised ? kConditionRaised : kConditionCleared;
  event.message = condition.finding.message;
  Set("condition", condition.name, &event.fields);
  Set("reason", condition.finding.reason, &event.fields);
  Set("since_unix_ns", absl::StrCat(condition.since_ns), &event.fields);
  if (!raised) return event;
  Set("severity", std::string(SeverityName(condition.finding.severity)), &event.fields);
  AddCulprit(condition.finding, &event.fields);
  for (const Figure& figure : condition.finding.figures) {
    event.fields[absl::StrCat(kFigurePrefix, figure.name)] = absl::StrFormat("%.17g", figure.value);
  }
  return event;
}

absl::StatusOr<OpenConditions> ReadOpenConditions(const storage::Store& store,
                                                  const std::string& job) {
  OpenConditions open;
  std::set<std::string> seen;
  size_t events = 0;
  absl::Status status =
      store.VisitEvents(job, INT64_MIN, INT64_MAX, storage::Store::EventOrder::kNewestFirst,
                        [&](const storage::Event& event) {
                          const bool raised = event.kind == kConditionRaised;
                          if (raised || event.kind == kConditionCleared) {
                            const std::string name = Get(event.fields, "condition");
                            if (seen.insert(name).second && raised) open[name] = OpenOf(event);
                          }
                          return ++events < kMaxEventsRead;
                        });
  if (!status.ok()) return status;
  return open;
}

void ApplyEvent(const storage::Event& event, OpenConditions* open) {
  const std::string name = Get(event.fields, "condition");
  if (event.kind == kConditionRaised) {
    (*open)[name] = OpenOf(event);
  } else if (event.kind == kConditionCleared) {
    open->erase(name);
  }
}

}  // namespace tacho::server::conditions
