// Runs checks side by side, each no longer than its deadline.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/diagnose/finding.h"

namespace tacho::agent {

struct Check {
  std::string name;
  absl::Duration deadline = absl::Seconds(5);
  // On a thread of its own. It must own all that it uses: when it is still at work at its deadline
  // it is left behind, and goes on until the process ends. Findings without a check get its name.
  std::function<std::vector<Finding>()> run;
  // What to do if it does not end.
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
