// How a job is doing, from what the collector reports.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

struct TaskStatus {
  v1::Task task;
  absl::Duration age;        // Since its last sample.
  int64_t behind_steps = 0;  // Behind the task that is furthest in the same attempt.
  bool silent = false;
  std::map<std::string, v1::LatestSample> latest;  // By metric.
};

struct JobStatus {
  enum class State { kReporting, kSilent, kEnded };

  v1::GetJobResponse job;
  State state = State::kReporting;
  absl::Duration age;                       // Since the job's last sample.
  absl::Duration silent_after;              // The limit for silence.
  std::optional<v1::RecordedEvent> ended;   // The newest attempt's.
  std::optional<int64_t> planned_steps;     // The attribute of that name.
  bool from_zero = false;                   // Steps are counted from 0.
  std::optional<double> progress;           // 0 to 1 (more if it ran beyond the plan).
  std::optional<double> steps_per_second;   // The newest attempt's, over all of its time.
  std::optional<absl::Duration> remaining;  // While it is reporting.
  std::vector<std::string> key_metrics;     // Those shown for each task.
  std::vector<TaskStatus> tasks;
  // nullopt if nothing judges the job.
  std::optional<std::vector<v1::Condition>> conditions;
  std::string page_url;  // Its screen on the collector's page; empty: there is none.

  // The newest attempt, or nullptr.
  const v1::Attempt* attempt() const;
};

// A task that is this many steps behind is marked; fewer are normal, as tasks never report at the
// same instant.
inline constexpr int64_t kBehindSteps = 2;

// The metrics that say most about a training, by their usual names ("loss" or "train/loss",
// learning rate, gradient norm, step time, examples a second); else the first few.
std::vector<std::string> KeyMetrics(const v1::GetJobResponse& job);

// `silent_after` 0: five mean steps, at least a minute.
JobStatus AssessJob(v1::GetJobResponse job, std::vector<std::string> key_metrics,
                    const std::vector<v1::LatestSample>& latest,
                    const std::vector<v1::RecordedEvent>& ended, absl::Time now,
                    absl::Duration silent_after);

// "running", "silent", "ended", "replaced"; "" if the collector did not say.
std::string StateName(v1::JobState state);

// JOB_STATE_UNSPECIFIED for any other word.
v1::JobState StateOf(absl::string_view name);

// "0..99, 150"; "" if there are none.
std::string StepRangesText(const google::protobuf::RepeatedPtrField<v1::StepRange>& ranges);

}  // namespace tacho::ctl
