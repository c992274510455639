// The result of a check, and running checks.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::agent {

// The result of a check of `tacho-agent diagnose`.

enum class Severity {
  kOk,
  kInfo,     // Nothing to do, or nothing to check here; the message says which.
  kWarning,  // It works; something will be missing, slow or lost.
  kFailed,   // It does not work.
};

struct Finding {
  std::string check = {};    // "clock"
  std::string subject = {};  // An address or a source, if there are several.
  Severity severity = Severity::kOk;
  std::string message = {};
  std::string remedy = {};                          // Says what to do; empty for kOk and kInfo.
  std::map<std::string, std::string> figures = {};  // For machines: "round_trip_seconds".
};

absl::string_view SeverityName(Severity severity);  // "ok", "info", "warning", "failed"

// Returns the code of the worst finding: 0 for ok and info, 3 for a warning, 4 for a failure. 1 and
// 2 are the agent's own: it could not start, wrong flags or configuration.
int ExitCodeOf(const std::vector<Finding>& findings);

// A table for people, with remedies and a last line that sums up; one JSON document for machines.
std::string FindingsAsTable(const std::vector<Finding>& findings);
std::string FindingsAsJson(const std::vector<Finding>& findings);

// Runs checks side by side, each no longer than its deadline.

struct Check {
  std::string name;
  absl::Duration deadline = absl::Seconds(5);
  // On a thread of its own. It must own all that it uses: when it is still at work at its deadline
  // it is left behind, and goes on until the process ends. Findings without a check get its name.
  std::function<std::vector<Finding>()> run;
  // Says what to do if it does not end.
  std::string remedy = {};
};

struct CheckResults {
  std::vector<Finding> findings;  // In the order of the checks.
  // Checks were left behind: end the process with _exit(), as they may hold locks of the libraries.
  bool left_behind = false;
};

// Returns after the longest deadline at the latest, whatever the checks do. One that did not end in
// time is a finding that failed.
CheckResults RunChecks(const std::vector<Check>& checks);

}  // namespace tacho::agent
