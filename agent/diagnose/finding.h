// What a check of `tacho-agent diagnose` has found.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::agent {

enum class Severity {
  kOk,
  kInfo,     // Nothing to do, or nothing to check here; the message says which.
  kWarning,  // It works; something will be missing, slow or lost.
  kFailed,   // It does not work.
};

struct Finding {
  std::string check = {};    // "clock"
  std::string subject = {};  // What it is about, if there are several: an address, a source.
  Severity severity = Severity::kOk;
  std::string message = {};
  std::string remedy = {};                          // What to do; empty for kOk and kInfo.
  std::map<std::string, std::string> figures = {};  // For machines: "round_trip_seconds".
};

absl::string_view SeverityName(Severity severity);  // "ok", "info", "warning", "failed"

// Of the worst finding: 0 for ok and info, 3 for a warning, 4 for a failure. 1 and 2 are the
// agent's own: it could not start, wrong flags or configuration.
int ExitCodeOf(const std::vector<Finding>& findings);

// A table for people, with remedies and a last line that sums up; one JSON document for machines.
std::string FindingsAsTable(const std::vector<Finding>& findings);
std::string FindingsAsJson(const std::vector<Finding>& findings);

}  // namespace tacho::agent
