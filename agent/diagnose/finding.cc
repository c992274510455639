#include "agent/diagnose/finding.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/json_text.h"

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

}  // namespace tacho::agent
