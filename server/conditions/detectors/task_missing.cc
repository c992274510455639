// TaskMissing: fewer tasks report than there should be.
//
// Definition. A task is missing if it is one of
//   never seen   the attempt's attribute `tasks` is n, fewer than n tasks were ever seen, and its
//                number below n was not, `grace` after half of the present tasks were first seen
//   gap          without that attribute: its number lies between the lowest and the highest seen,
//                and such gaps are at most a tenth of the numbers (or one); more gaps are a way of
//                numbering
//   gone         it sent rows before, but none for gone_after and for 5 times the time between
//                rows with a new step (step_times.h); it has not ended, and at least half of the
//                tasks have sent rows in the second half of that time. in_step_after replaces
//                gone_after, and the time between rows is also its own, if it is 5 steps or more
//                behind tasks that are within 2 steps of each other: in a job that keeps in step,
//                tasks would wait for one that pauses
// A task with a silent agent is not gone: that is AgentSilent, and nobody knows about the task. Nor
// is one within a phase that it recorded itself, such as a checkpoint that the others do not wait
// for; when that has ended, its silence counts from then. The phases of others stand for a task
// that records none.
//
// Reasons: NeverSeen, Gap, Gone, of the first culprit. Score: 3, 2, 1 in this order. Not judged
// before any task was seen.
//
// Needs numbered tasks. Limits: tasks that should not report look missing; without the attribute,
// the last tasks may never come unnoticed. Takes O(n log n) in tasks.
//
// Source: ours; expected against present count was asked for in dcgm-exporter issue 348.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/heard.h"
#include "server/conditions/measures/phases.h"
#include "server/conditions/measures/step_times.h"

namespace tacho::server::conditions {
namespace {

constexpr uint32_t kMaxTasks = 1'000'000;  // A larger attribute is a mistake.
constexpr double kGoneIntervals = 5;
// Steps.
constexpr int64_t kInStep = 2;
constexpr int64_t kBehind = 5;

enum class Kind : uint8_t { kGone = 1, kGap = 2, kNeverSeen = 3 };

struct Missing {
  uint32_t task = 0;
  Kind kind = Kind::kGone;
  const TaskWindow* seen = nullptr;  // nullptr: never seen.
};

const char* Word(Kind kind) {
  switch (kind) {
    case Kind::kGone:
      return "Gone";
    case Kind::kGap:
      return "Gap";
    case Kind::kNeverSeen:
      return "NeverSeen";
  }
  return "";
}

std::optional<uint32_t> Expected(const JobWindow& window) {
  const auto found = window.attributes.find("tasks");
  uint32_t tasks = 0;
  if (found == window.attributes.end() || !absl::SimpleAtoi(found->second, &tasks) || tasks == 0 ||
      tasks > kMaxTasks) {
    return std::nullopt;
  }
  return tasks;
}

// Numbers in [from, to) that no task has, at most `count` of them.
void AddHoles(const std::set<uint32_t>& seen, uint32_t from, uint32_t to, size_t count, Kind kind,
              std::vector<Missing>* missing) {
  for (uint32_t task = from; task < to && count > 0; ++task) {
    if (seen.contains(task)) continue;
    missing->push_back({.task = task, .kind = kind, .seen = nullptr});
    --count;
  }
}

// When half of the present tasks had been seen.
int64_t HalfSeen(const JobWindow& window, const Hosts& hosts) {
  std::vector<int64_t> first;
  for (const TaskWindow& task : window.tasks) {
    first.push_back(hosts.Corrected(task.host, task.first_time_ns));
  }
  return UpperMedian(std::move(first));
}

struct Silence {
  const TaskWindow* task = nullptr;
  double seconds = 0;
};

// How far apart the rows of the task are by its own pace: it may record more rarely than others.
double OwnInterval(const TaskWindow& task) {
  const RowPace* const pace = task.pace.Best();
  if (pace == nullptr) return 0;
  std::vector<CountedInterval> intervals;
  pace->AppendTo(&intervals);
  return QuantileOf(std::move(intervals), 0.99);
}

// Phases explain the silence of a task if they began about at its last row, or when the one before
// had ended.
class PhaseEnds {
 public:
  explicit PhaseEnds(const JobWindow& window) : phases_(FindPhases(window)) {
    for (const PhaseInterval& phase : phases_) {
      if (phase.task.has_value()) recording_.insert(*phase.task);
    }
  }

  // When the silence of the task begins to count; kStillOpen: a phase of it has not ended.
  int64_t SilentSince(const TaskWindow& task) const {
    // A phase that the task goes on beside excuses nothing.
    const auto slack_ns = static_cast<int64_t>(1e9 * std::max(1.0, OwnInterval(task)));
    const bool records = recording_.contains(*task.task);
    const auto first = std::partition_point(
        phases_.begin(), phases_.end(),
        [&](const PhaseInterval& phase) { return phase.start_ns < task.last_time_ns - slack_ns; });
    int64_t since_ns = task.last_time_ns;
    for (auto phase = first; phase != phases_.end() && since_ns != kStillOpen; ++phase) {
      if (records && phase->task != task.task) continue;
      if (phase->start_ns > since_ns + 2 * slack_ns) break;
      since_ns = std::max(since_ns, phase->end_ns);
    }
    return since_ns;
  }

 private:
  const std::vector<PhaseInterval> phases_;
  std::set<uint32_t> recording_;  // The tasks that record phases.
};

// The tasks of which something can be known, with how long they have sent nothing.
std::vector<Silence> Silences(const JobWindow& window, const Hosts& hosts) {
  const PhaseEnds ends(window);
  std::vector<Silence> all;
  for (const TaskWindow& task : window.tasks) {
    if (!task.lives() || !task.task.has_value() || hosts.Unheard(task.host)) continue;
    const int64_t since_ns = ends.SilentSince(task);
    if (since_ns == kStillOpen) continue;
    all.push_back({&task, Seconds(window.now_ns - hosts.Corrected(task.host, since_ns))});
  }
  return all;
}

// Those that fell silent a little later than the first, as all do in a hang, do not go on.
bool GoesOn(const Silence& one, double limit) { return one.seconds <= limit / 2; }

// The lowest step of the tasks that go on, if they keep in step; nullopt: they do not.
std::optional<int64_t> CommonStep(const std::vector<Silence>& all, double limit) {
  int64_t lowest = INT64_MAX;
  int64_t highest = INT64_MIN;
  size_t known = 0;
  for (const Silence& one : all) {
    if (!GoesOn(one, limit) || !one.task->last_step.has_value()) continue;
    lowest = std::min(lowest, *one.task->last_step);
    highest = std::max(highest, *one.task->last_step);
    ++known;
  }
  if (known < 2 || highest - lowest > kInStep) return std::nullopt;
  return lowest;
}

void AddGone(const JobWindow& window, const Hosts& hosts, double gone_after, double in_step_after,
             std::vector<Missing>* missing) {
  const std::vector<Silence> all = Silences(window, hosts);
  const std::optional<int64_t> common = CommonStep(all, in_step_after);
  std::vector<Missing> gone;
  size_t going_on = 0;
  for (const Silence& one : all) {
    if (GoesOn(one, common.has_value() ? in_step_after : gone_after)) {
      ++going_on;
      continue;
    }
    double limit = gone_after;
    if (common.has_value() && one.task->last_step.value_or(INT64_MAX) <= *common - kBehind) {
      limit = std::min(limit, std::max(in_step_after, kGoneIntervals * OwnInterval(*one.task)));
    }
    if (one.seconds > limit) {
      gone.push_back({.task = *one.task->task, .kind = Kind::kGone, .seen = one.task});
    }
  }
  if (going_on >= gone.size()) missing->insert(missing->end(), gone.begin(), gone.end());
}

std::string MessageOf(const JobWindow& window, const std::vector<Missing>& missing) {
  const Missing& first = missing.front();
  std::string text = missing.size() == 1 ? absl::StrFormat("Task %d is missing: it ", first.task)
                                         : absl::StrFormat("%d tasks are missing; task %d ",
                                                           missing.size(), first.task);
  if (first.seen == nullptr) {
    absl::StrAppend(&text, "has never reported");
    return text;
  }
  absl::StrAppendFormat(&text, "sent its last row from %s %.0f s ago", first.seen->host,
                        Seconds(window.now_ns - first.seen->last_time_ns));
  if (first.seen->last_step.has_value()) {
    absl::StrAppend(&text, ", at step ", *first.seen->last_step);
  }
  return text;
}

}  // namespace

Finding DetectTaskMissing(const JobWindow& window, const Progress::TaskMissing& settings) {
  if (window.ended) return NotPresent();
  std::set<uint32_t> seen;
  for (const TaskWindow& task : window.tasks) {
    if (task.task.has_value()) seen.insert(*task.task);
  }
  if (seen.empty()) return NotJudged();
  const bool any_lives = std::any_of(window.tasks.begin(), window.tasks.end(),
                                     [](const TaskWindow& task) { return task.lives(); });
  if (!any_lives) return NotPresent();
  const Hosts hosts(window);
  std::vector<Missing> missing;
  const std::optional<uint32_t> expected = Expected(window);
  if (window.now_ns - HalfSeen(window, hosts) > settings.grace()) {
    const uint32_t span = *seen.rbegin() - *seen.begin() + 1;
    const size_t holes = span - seen.size();
    if (expected.has_value() && seen.size() < *expected) {
      AddHoles(seen, 0, *expected, *expected - seen.size(), Kind::kNeverSeen, &missing);
    } else if (!expected.has_value() && holes <= std::max<size_t>(1, span / 10) &&
               seen.size() >= 4) {
      AddHoles(seen, *seen.begin(), *seen.rbegin(), holes, Kind::kGap, &missing);
    }
  }
  const size_t never = missing.size();
  const double least = kGoneIntervals * ProgressInterval(window);
  const double gone_after = std::max(Seconds(settings.gone_after()), least);
  const double in_step_after =
      std::min(gone_after, std::max(Seconds(settings.in_step_after()), least));
  AddGone(window, hosts, gone_after, in_step_after, &missing);
  if (missing.empty()) return NotPresent();

  const Missing& first = missing.front();
  Finding finding = Present(Severity::kWarning, Word(first.kind), MessageOf(window, missing));
  if (first.seen != nullptr) finding.since_ns = first.seen->last_time_ns;
  for (const Missing& one : missing) {
    Culprit culprit;
    culprit.task = one.task;
    if (one.seen != nullptr) culprit.host = one.seen->host;
    if (one.seen != nullptr) culprit.step = one.seen->last_step;
    culprit.score = static_cast<double>(one.kind);
    finding.Blame(std::move(culprit));
  }
  finding.figures = {{"tasks_seen", static_cast<double>(seen.size()), "1"},
                     {"tasks_never_seen", static_cast<double>(never), "1"},
                     {"tasks_gone", static_cast<double>(missing.size() - never), "1"},
                     {"gone_after", gone_after, "s"}};
  if (expected.has_value()) finding.AddFigure("tasks_expected", *expected, "1");
  return finding;
}

}  // namespace tacho::server::conditions
