#include "agent/diagnose/finding.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/base/clock.h"
#include "proto/base/json_text.h"
#include "proto/base/timed_wait.h"

namespace tacho::agent {
namespace {

constexpr int kExitWarning = 3;
constexpr int kExitFailure = 4;

std::string AsJson(const Finding& finding) {
  std::string json = absl::StrCat("{\"check\": ", JsonString(finding.check),
                                  ", \"subject\": ", JsonString(finding.subject),
                                  ", \"severity\": ", JsonString(SeverityName(finding.severity)),
                                  ", \"message\": ", JsonString(finding.message),
                                  ", \"remedy\": ", JsonString(finding.remedy), ", \"figures\": {");
  absl::string_view separator;
  for (const auto& [name, value] : finding.figures) {
    absl::StrAppend(&json, separator, JsonString(name), ": ", JsonString(value));
    separator = ", ";
  }
  return json + "}}";
}

Severity WorstOf(const std::vector<Finding>& findings) {
  Severity worst = Severity::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

}  // namespace

absl::string_view SeverityName(Severity severity) {
  static constexpr std::array<absl::string_view, 4> kNames = {{"ok", "info", "warning", "failed"}};
  return kNames[static_cast<size_t>(severity)];
}

int ExitCodeOf(const std::vector<Finding>& findings) {
  const Severity worst = WorstOf(findings);
  if (worst == Severity::kFailed) return kExitFailure;
  return worst == Severity::kWarning ? kExitWarning : 0;
}

std::string FindingsAsTable(const std::vector<Finding>& findings) {
  size_t check = 0;
  size_t subject = 0;
  std::array<size_t, 4> counts = {};
  for (const Finding& finding : findings) {
    check = std::max(check, finding.check.size());
    subject = std::max(subject, finding.subject.size());
    ++counts[static_cast<size_t>(finding.severity)];
  }
  constexpr size_t kSeverityWidth = 7;
  std::string table;
  for (const Finding& finding : findings) {
    absl::StrAppendFormat(&table, "%-*s  %-*s  %-*s  %s\n", kSeverityWidth,
                          std::string(SeverityName(finding.severity)), check, finding.check,
                          subject, finding.subject, finding.message);
    if (finding.remedy.empty()) continue;
    absl::StrAppendFormat(&table, "%*s-> %s\n", kSeverityWidth + check + subject + 6, "",
                          finding.remedy);
  }
  absl::StrAppend(&table, counts[3], " failed, ", counts[2], " warnings, ", counts[1], " infos, ",
                  counts[0], " ok\n");
  return table;
}

std::string FindingsAsJson(const std::vector<Finding>& findings) {
  std::string json = absl::StrCat("{\"worst\": ", JsonString(SeverityName(WorstOf(findings))),
                                  ", \"findings\": [");
  absl::string_view separator = "\n";
  for (const Finding& finding : findings) {
    absl::StrAppend(&json, separator, AsJson(finding));
    separator = ",\n";
  }
  return json + "\n]}\n";
}

namespace {

// Holds the findings of one check. The check's thread keeps it alive.
struct Slot {
  absl::Mutex mutex;
  bool done ABSL_GUARDED_BY(mutex) = false;
  std::vector<Finding> findings ABSL_GUARDED_BY(mutex);
};

std::shared_ptr<Slot> Start(const Check& check) {
  auto slot = std::make_shared<Slot>();
  std::thread([slot, run = check.run] {
    std::vector<Finding> findings = run();
    absl::MutexLock lock(&slot->mutex);
    slot->findings = std::move(findings);
    slot->done = true;
  }).detach();
  return slot;
}

}  // namespace

CheckResults RunChecks(const std::vector<Check>& checks) {
  const absl::Time began = MonotonicNow();
  std::vector<std::shared_ptr<Slot>> slots;
  slots.reserve(checks.size());
  for (const Check& check : checks) slots.push_back(Start(check));
  CheckResults results;
  for (size_t i = 0; i < checks.size(); ++i) {
    const absl::Duration left = began + checks[i].deadline - MonotonicNow();
    absl::MutexLock lock(&slots[i]->mutex);
    if (!AwaitFor(&slots[i]->mutex, absl::Condition(&slots[i]->done), left)) {
      results.left_behind = true;
      results.findings.push_back(
          {.check = checks[i].name,
           .severity = Severity::kFailed,
           .message = absl::StrCat("did not end within ", absl::FormatDuration(checks[i].deadline)),
           .remedy = checks[i].remedy});
      continue;
    }
    for (Finding& finding : slots[i]->findings) {
      if (finding.check.empty()) finding.check = checks[i].name;
      results.findings.push_back(std::move(finding));
    }
  }
  return results;
}

}  // namespace tacho::agent
