#include "tests/support/fleet/fleet_spec.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tacho::fleet {
namespace {

constexpr uint32_t kMaxTasks = 4096;
constexpr double kMinStepSeconds = 0.001;

bool Set(absl::string_view key, absl::string_view value, JobSpec* job) {
  if (key == "tasks") {
    return absl::SimpleAtoi(value, &job->tasks) && job->tasks > 0 && job->tasks <= kMaxTasks;
  }
  if (key == "per_host") {
    return absl::SimpleAtoi(value, &job->tasks_per_host) && job->tasks_per_host > 0;
  }
  if (key == "step") {
    return absl::SimpleAtod(value, &job->step_seconds) && job->step_seconds >= kMinStepSeconds;
  }
  if (key == "steps") return absl::SimpleAtoi(value, &job->steps) && job->steps > 0;
  if (key == "eval") return absl::SimpleAtoi(value, &job->eval_every) && job->eval_every >= 0;
  if (key == "checkpoint") {
    return absl::SimpleAtoi(value, &job->checkpoint_every) && job->checkpoint_every >= 0;
  }
  return false;
}

}  // namespace

std::string HostName(uint32_t host) { return absl::StrCat("host-", host); }

absl::StatusOr<JobSpec> ParseJob(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  JobSpec job;
  job.name = std::string(parts.first);
  if (job.name.empty()) return absl::InvalidArgumentError("--job: no name before the ':'");
  for (const absl::string_view setting : absl::StrSplit(parts.second, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(setting, absl::MaxSplits('=', 1));
    if (!Set(pair.first, pair.second, &job)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--job ", job.name, ": '", setting,
          "' is no setting; expected tasks, per_host, step, steps, eval or checkpoint, '=' and a "
          "number in its bounds"));
    }
  }
  return job;
}

}  // namespace tacho::fleet
