// What a person wants to know about a job, worked out from what the collector says.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

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
  absl::Duration silent_after;              // What was taken for silence.
  std::optional<v1::RecordedEvent> ended;   // Of the newest attempt.
  std::optional<int64_t> planned_steps;     // The attribute of that name.
  bool from_zero = false;                   // Steps are counted from 0.
  std::optional<double> progress;           // 0 to 1 (more if it ran beyond the plan).
  std::optional<double> steps_per_second;   // Of the newest attempt, over all of its time.
  std::optional<absl::Duration> remaining;  // While it is reporting.
  std::vector<std::string> key_metrics;     // Those shown for each task.
  std::vector<TaskStatus> tasks;
  // What is judged; nullopt: nothing is, or the collector is one that does not.
  std::optional<std::vector<v1::Condition>> conditions;

  // The newest attempt, or nullptr.
  const v1::Attempt* attempt() const;
};

// At most this many steps a task may be behind before it is worth saying: tasks never report in the
// same instant.
inline constexpr int64_t kBehindSteps = 2;

// The metrics that say most about a training: loss, learning rate, gradient norm, step time,
// examples a second, by their usual names, "train/loss" and the like included; else the first few.
std::vector<std::string> KeyMetrics(const v1::GetJobResponse& job);

// `silent_after` 0 decides it from the pace: five mean steps, at least a minute.
JobStatus AssessJob(v1::GetJobResponse job, std::vector<std::string> key_metrics,
                    const std::vector<v1::LatestSample>& latest,
                    const std::vector<v1::RecordedEvent>& ended, absl::Time now,
                    absl::Duration silent_after);

}  // namespace tacho::ctl
