// Derives a job's state from what the collector stores: silence from the pace of its steps,
// progress from the attribute planned_steps.
#include "client/ctl/views/job_status.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/progress.h"

namespace tacho::ctl {
namespace {

constexpr std::array<absl::string_view, 5> kUsualMetrics = {
    "loss", "learning_rate", "grad_norm", "step_time_seconds", "examples_per_second"};
constexpr size_t kFewMetrics = 4;
constexpr absl::Duration kShortestSilence = absl::Minutes(1);
constexpr double kSilentSteps = 5;

std::optional<std::string> FindMetric(const v1::GetJobResponse& job, absl::string_view name) {
  std::optional<std::string> found;
  for (const v1::Metric& metric : job.metrics()) {
    if (metric.name() == name) return metric.name();
    if (!found && absl::EndsWith(metric.name(), absl::StrCat("/", name))) found = metric.name();
  }
  return found;
}

absl::Duration Ago(int64_t unix_ns, absl::Time now) { return now - absl::FromUnixNanos(unix_ns); }

std::optional<double> StepsPerSecond(const v1::Attempt& attempt) {
  if (!attempt.has_first_step() || attempt.last_step() <= attempt.first_step()) return std::nullopt;
  const int64_t span_ns = attempt.last_seen_unix_ns() - attempt.first_seen_unix_ns();
  if (span_ns <= 0) return std::nullopt;
  return static_cast<double>(attempt.last_step() - attempt.first_step()) /
         (static_cast<double>(span_ns) * 1e-9);
}

absl::Duration SilenceFor(std::optional<double> steps_per_second) {
  if (!steps_per_second) return kShortestSilence;
  return std::max(kShortestSilence, absl::Seconds(kSilentSteps / *steps_per_second));
}

void AssessProgress(JobStatus& status) {
  const v1::Attempt* attempt = status.attempt();
  if (attempt == nullptr) return;
  status.steps_per_second = StepsPerSecond(*attempt);
  // A later attempt need not repeat what it takes over from the one before.
  for (const v1::Attempt& each : status.job.attempts()) {
    const auto found = each.attributes().find("planned_steps");
    int64_t planned = 0;
    if (found == each.attributes().end() || !absl::SimpleAtoi(found->second, &planned)) continue;
    if (planned > 0) status.planned_steps = planned;
  }
  if (!status.planned_steps || !attempt->has_last_step()) return;
  status.from_zero = std::any_of(
      status.job.attempts().begin(), status.job.attempts().end(),
      [](const v1::Attempt& each) { return each.has_first_step() && each.first_step() == 0; });
  const int64_t done = StepsDone(attempt->last_step(), status.from_zero);
  const int64_t missing = *status.planned_steps - done;
  status.progress = ProgressRatio(done, *status.planned_steps);
  if (status.steps_per_second && missing > 0) {
    status.remaining = absl::Seconds(static_cast<double>(missing) / *status.steps_per_second);
  }
}

void AssessTask(const JobStatus& status, int64_t furthest_step, absl::Time now, TaskStatus& task) {
  task.age = Ago(task.task.last_seen_unix_ns(), now);
  const bool ended =
      status.state == JobStatus::State::kEnded || task.task.state() == v1::JOB_STATE_ENDED;
  task.silent = !ended && task.age > status.silent_after;
  if (task.task.has_last_step()) task.behind_steps = furthest_step - task.task.last_step();
}

// If a metric has several series (one a chip), the one with the fewest labels stands for the task.
bool IsBetter(const v1::LatestSample& sample, const v1::LatestSample& known) {
  return std::make_tuple(-sample.series().labels_size(), sample.time_unix_ns()) >
         std::make_tuple(-known.series().labels_size(), known.time_unix_ns());
}

// Task number (-1 for none) and host, which together identify a task of a job.
using TaskKey = std::pair<int64_t, std::string>;

template <typename TaskOrSeries>
TaskKey KeyOf(const TaskOrSeries& of) {
  return {of.has_task() ? int64_t{of.task()} : -1, of.host()};
}

using LatestByTask = std::map<TaskKey, std::map<std::string, v1::LatestSample>>;

LatestByTask GroupByTask(const std::vector<v1::LatestSample>& latest) {
  LatestByTask by_task;
  for (const v1::LatestSample& sample : latest) {
    const v1::SeriesInfo& series = sample.series();
    const auto [known, added] = by_task[KeyOf(series)].emplace(series.metric().name(), sample);
    if (!added && IsBetter(sample, known->second)) known->second = sample;
  }
  return by_task;
}

}  // namespace

const v1::Attempt* JobStatus::attempt() const {
  const v1::Attempt* newest = nullptr;
  for (const v1::Attempt& attempt : job.attempts()) {
    if (newest == nullptr || attempt.attempt() >= newest->attempt()) newest = &attempt;
  }
  return newest;
}

std::vector<std::string> KeyMetrics(const v1::GetJobResponse& job) {
  std::vector<std::string> names;
  for (const absl::string_view usual : kUsualMetrics) {
    if (auto name = FindMetric(job, usual)) names.push_back(*std::move(name));
  }
  if (!names.empty()) return names;
  for (const v1::Metric& metric : job.metrics()) {
    if (names.size() == kFewMetrics) break;
    names.push_back(metric.name());
  }
  return names;
}

JobStatus AssessJob(v1::GetJobResponse job, std::vector<std::string> key_metrics,
                    const std::vector<v1::LatestSample>& latest,
                    const std::vector<v1::RecordedEvent>& ended, absl::Time now,
                    absl::Duration silent_after) {
  JobStatus status;
  status.job = std::move(job);
  status.key_metrics = std::move(key_metrics);
  status.age = Ago(status.job.job().last_seen_unix_ns(), now);
  AssessProgress(status);
  status.silent_after =
      silent_after > absl::ZeroDuration() ? silent_after : SilenceFor(status.steps_per_second);
  for (const v1::RecordedEvent& event : ended) {
    const v1::Attempt* attempt = status.attempt();
    if (attempt != nullptr && event.source().attempt() == attempt->attempt()) status.ended = event;
  }
  // The end of one task is not that of the job. Collectors that say no state say ends of jobs.
  const v1::JobState state = status.job.job().state();
  if (state != v1::JOB_STATE_ENDED && state != v1::JOB_STATE_UNSPECIFIED) status.ended.reset();
  if (status.ended) {
    status.state = JobStatus::State::kEnded;
  } else if (status.age > status.silent_after) {
    status.state = JobStatus::State::kSilent;
  }
  if (status.state != JobStatus::State::kReporting) status.remaining.reset();

  std::map<uint32_t, int64_t> furthest_step;  // By attempt.
  for (const v1::Task& task : status.job.tasks()) {
    if (!task.has_last_step()) continue;
    const auto [known, added] = furthest_step.emplace(task.attempt(), task.last_step());
    known->second = std::max<int64_t>(known->second, task.last_step());
  }
  LatestByTask by_task = GroupByTask(latest);
  for (const v1::Task& task : status.job.tasks()) {
    TaskStatus& one = status.tasks.emplace_back();
    one.task = task;
    AssessTask(status, furthest_step[task.attempt()], now, one);
    one.latest = std::move(by_task[KeyOf(task)]);
  }
  return status;
}

std::string StateName(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_RUNNING:
      return "running";
    case v1::JOB_STATE_SILENT:
      return "silent";
    case v1::JOB_STATE_ENDED:
      return "ended";
    case v1::JOB_STATE_REPLACED:
      return "replaced";
    default:
      return "";
  }
}

v1::JobState StateOf(absl::string_view name) {
  for (const v1::JobState state :
       {v1::JOB_STATE_RUNNING, v1::JOB_STATE_SILENT, v1::JOB_STATE_ENDED, v1::JOB_STATE_REPLACED}) {
    if (StateName(state) == name) return state;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

std::string StepRangesText(const google::protobuf::RepeatedPtrField<v1::StepRange>& ranges) {
  std::string text;
  for (const v1::StepRange& range : ranges) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", range.begin());
    if (range.end() != range.begin()) absl::StrAppend(&text, "..", range.end());
  }
  return text;
}

}  // namespace tacho::ctl
