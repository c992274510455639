#include "agent/diagnose/runner.h"

#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/base/clock.h"

namespace tacho::agent {
namespace {

// Of one check; its thread keeps it alive.
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
    if (!slots[i]->mutex.AwaitWithTimeout(absl::Condition(&slots[i]->done), left)) {
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
