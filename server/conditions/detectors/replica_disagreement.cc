// ReplicaDisagreement: a scalar that must be the same on all tasks is not.
//
// Definition. At each of the newest `steps` steps that at least two tasks have recorded, the values
// of a replica scalar (such as a checksum or norm of the weights) are grouped: by their bits if
// `tolerance` is 0, where NaN equals NaN; otherwise a value belongs to a group if it is within
// `tolerance`, relative, of the group's first value. The largest group is right (among equal ones
// that with the lowest task); the others are the minority. The condition is true if at least
// `least_steps` of those steps have a minority. Tasks that have not recorded a step yet do not
// count at it. Source: redundancy against silent data corruption, as in Hochschild et al., "Cores
// that don't count" (HotOS 2021); replicas in data-parallel training are such redundancy.
//
// Needs replica_scalar on two tasks. With two tasks, or without a group of more than half, the
// reason is ReplicasDifferNoMajority: nobody knows who is right, and the culprits are all but the
// first group. Score: the number of steps at which a task differed. Limits: values must come from
// the same point of the same step, and be equal by design. Reductions in another order differ in
// the last bits: set `tolerance`.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/curve.h"

namespace tacho::server::conditions {
namespace {

struct Value {
  const TaskWindow* task = nullptr;
  double value = 0;
  int64_t time_ns = 0;
};

// The newest steps first.
using ByStep = std::map<int64_t, std::vector<Value>, std::greater<>>;

struct Difference {
  int64_t step = 0;
  int64_t time_ns = 0;
  double majority = 0;
  size_t majority_tasks = 0;
  size_t tasks = 0;
  std::vector<Value> minority;
};

struct Offender {
  const TaskWindow* task = nullptr;
  size_t steps = 0;
  int64_t first_step = 0;
};

bool Same(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (tolerance <= 0) return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  if (a == b) return true;  // Infinities.
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

ByStep Collect(const JobWindow& window, const std::string& metric, size_t steps) {
  ByStep by_step;
  for (const TaskWindow& task : window.tasks) {
    const auto found = task.tracks.find(Signal::kReplicaScalar);
    if (found == task.tracks.end()) continue;
    for (const Track& track : found->second) {
      if (track.metric != metric) continue;
      std::vector<Point> points = EffectivePoints(track.points);
      // Twice as many: another task may not have recorded the newest steps yet.
      const size_t count = std::min(points.size(), 2 * steps);
      for (size_t i = points.size() - count; i < points.size(); ++i) {
        by_step[points[i].step].push_back({&task, points[i].value, points[i].time_ns});
      }
    }
  }
  return by_step;
}

// In the order of the tasks: among groups of equal size, the first has the lowest task.
std::vector<std::vector<Value>> GroupsOf(const std::vector<Value>& values, double tolerance) {
  std::vector<std::vector<Value>> groups;
  for (const Value& value : values) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& members) {
      return Same(members.front().value, value.value, tolerance);
    });
    if (group != groups.end()) {
      group->push_back(value);
    } else {
      groups.push_back({value});
    }
  }
  return groups;
}

std::optional<Difference> Compare(int64_t step, const std::vector<Value>& values,
                                  double tolerance) {
  const std::vector<std::vector<Value>> groups = GroupsOf(values, tolerance);
  if (groups.size() < 2) return std::nullopt;
  const auto most =
      std::max_element(groups.begin(), groups.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  Difference difference{.step = step,
                        .majority = most->front().value,
                        .majority_tasks = most->size(),
                        .tasks = values.size()};
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    for (const Value& value : *group) {
      difference.time_ns = std::max(difference.time_ns, value.time_ns);
      if (group != most) difference.minority.push_back(value);
    }
  }
  return difference;
}

std::vector<Offender> OffendersOf(const std::vector<Difference>& differences) {
  std::map<const TaskWindow*, Offender> by_task;      // Tasks lie in one vector: by their order.
  for (const Difference& difference : differences) {  // The newest first.
    for (const Value& value : difference.minority) {
      Offender& offender = by_task[value.task];
      offender.task = value.task;
      offender.first_step = difference.step;
      ++offender.steps;
    }
  }
  std::vector<Offender> offenders;
  for (const auto& [task, offender] : by_task) offenders.push_back(offender);
  std::stable_sort(offenders.begin(), offenders.end(),
                   [](const Offender& a, const Offender& b) { return a.steps > b.steps; });
  return offenders;
}

std::string NameOf(const TaskWindow& task) {
  std::string name = task.task ? absl::StrCat("task ", *task.task) : "a source without task";
  if (!task.host.empty()) absl::StrAppend(&name, " on ", task.host);
  return name;
}

// `differences` are not empty, the newest first.
Finding OfDifferences(const std::string& metric, const std::vector<Difference>& differences,
                      size_t compared) {
  TACHO_CHECK(!differences.empty() && !differences.back().minority.empty());
  const Difference& first = differences.back();
  const Value& odd = first.minority.front();
  const std::vector<Offender> offenders = OffendersOf(differences);
  const bool majority = 2 * first.majority_tasks > first.tasks;
  Finding finding = Present(
      Severity::kCritical, majority ? "ReplicasDiffer" : "ReplicasDifferNoMajority",
      absl::StrCat(metric, " of ", NameOf(*odd.task), " is ", ValueText(odd.value), " at step ",
                   first.step, ", but ", first.majority_tasks, " of ", first.tasks, " tasks have ",
                   ValueText(first.majority), "; ", offenders.size(),
                   offenders.size() == 1 ? " task differs" : " tasks differ", " at ",
                   differences.size(), " of ", compared, " steps"));
  finding.since_ns = first.time_ns;
  finding.step = first.step;
  finding.figures = {{"tasks_differing", static_cast<double>(offenders.size()), "1"},
                     {"tasks", static_cast<double>(first.tasks), "1"},
                     {"majority_value", first.majority, "1"},
                     {"minority_value", odd.value, "1"},
                     {"steps_differing", static_cast<double>(differences.size()), "1"},
                     {"steps_compared", static_cast<double>(compared), "1"}};
  for (const Offender& offender : offenders) {
    finding.BlameTask(*offender.task, static_cast<double>(offender.steps), offender.first_step,
                      metric);
  }
  return finding;
}

Finding Judge(const JobWindow& window, const std::string& metric,
              const Curves::ReplicaDisagreement& settings) {
  std::vector<Difference> differences;
  size_t compared = 0;
  for (const auto& [step, values] : Collect(window, metric, settings.steps())) {
    if (values.size() < 2) continue;
    if (compared == settings.steps()) break;
    ++compared;
    if (auto difference = Compare(step, values, settings.tolerance())) {
      differences.push_back(*std::move(difference));
    }
  }
  if (compared == 0) return NotJudged();
  if (differences.size() < std::max(settings.least_steps(), 1u)) return NotPresent();
  return OfDifferences(metric, differences, compared);
}

}  // namespace

Finding DetectReplicaDisagreement(const JobWindow& window,
                                  const Curves::ReplicaDisagreement& settings) {
  std::vector<std::string> metrics;
  for (const TaskWindow& task : window.tasks) {
    const auto found = task.tracks.find(Signal::kReplicaScalar);
    if (found == task.tracks.end()) continue;
    for (const Track& track : found->second) {
      const bool known = std::find(metrics.begin(), metrics.end(), track.metric) != metrics.end();
      if (!known) metrics.push_back(track.metric);
    }
  }
  Finding result = NotJudged();
  for (const std::string& metric : metrics) {
    Finding finding = Judge(window, metric, settings);
    if (finding.present) return finding;
    if (finding.judged) result = std::move(finding);
  }
  return result;
}

}  // namespace tacho::server::conditions
