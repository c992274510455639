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
// It is also true of a loss whose bits were equal on all tasks at the first 16 steps or more that
// the window has of them, with more than one value, and differ at the newest one: such a loss was
// averaged over replicas, and is no more. That is a warning, because nobody has declared it equal.
//
// Needs replica_scalar on two tasks, or such a loss. With two tasks, or without a group of more
// than half, the reason is ReplicasDifferNoMajority: nobody knows who is right, and the culprits
// are all but the first group. Score: the number of steps at which a task differed. Limits: values
// must come from the same point of the same step, and be equal by design. Reductions in another
// order differ in the last bits: set `tolerance`.
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
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/curve.h"

namespace tacho::server::conditions {
namespace {

// So many losses are not equal by chance.
constexpr size_t kLeastEqualLosses = 16;

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

// Two values that differ, with as many digits as show it.
std::pair<std::string, std::string> Texts(double a, double b) {
  std::pair<std::string, std::string> texts = {ValueText(a), ValueText(b)};
  if (texts.first != texts.second) return texts;
  return {absl::StrFormat("%.17g", a), absl::StrFormat("%.17g", b)};
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
  const auto [odd_text, majority_text] = Texts(odd.value, first.majority);
  Finding finding =
      Present(Severity::kCritical, majority ? "ReplicasDiffer" : "ReplicasDifferNoMajority",
              absl::StrCat(metric, " of ", NameOf(*odd.task), " is ", odd_text, " at step ",
                           first.step, ", but ", first.majority_tasks, " of ", first.tasks,
                           " tasks have ", majority_text, "; ", offenders.size(),
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

// How the losses of a task compare with those of a reference, at the steps that both have.
struct Parting {
  const TaskWindow* task = nullptr;
  size_t equal = 0;  // Steps before the first that differs.
  bool varies = false;
  std::optional<Point> own;  // The first that differs, and that of the reference.
  std::optional<Point> reference;
  bool now = false;  // The newest one differs.
};

Parting Part(const TaskWindow& task, const std::vector<Point>& own,
             const std::vector<Point>& reference) {
  Parting parting = {.task = &task};
  std::optional<double> before;
  for (size_t i = 0, k = 0; i < own.size() && k < reference.size();) {
    if (own[i].step != reference[k].step) {
      ++(own[i].step < reference[k].step ? i : k);
      continue;
    }
    parting.now = !Same(own[i].value, reference[k].value, 0);
    if (parting.now && !parting.own.has_value()) {
      parting.own = own[i];
      parting.reference = reference[k];
      if (parting.equal < kLeastEqualLosses) return parting;
    }
    if (!parting.own.has_value()) ++parting.equal;
    if (before.has_value() && *before != own[i].value) parting.varies = true;
    before = own[i].value;
    ++i;
    ++k;
  }
  return parting;
}

// `parted` differ from the reference now; they are not empty.
Finding OfPartings(const std::string& metric, const TaskWindow& reference,
                   const std::vector<Parting>& parted, size_t tasks) {
  TACHO_CHECK(!parted.empty());
  const Parting& first = *std::min_element(
      parted.begin(), parted.end(),
      [](const Parting& a, const Parting& b) { return a.own->step < b.own->step; });
  // If most differ from the reference, that is the odd one.
  const bool reference_is_odd = tasks > 2 && parted.size() * 2 > tasks;
  const TaskWindow& odd = reference_is_odd ? reference : *first.task;
  const Point& odd_point = reference_is_odd ? *first.reference : *first.own;
  const Point& other_point = reference_is_odd ? *first.own : *first.reference;
  const auto [odd_text, other_text] = Texts(odd_point.value, other_point.value);
  const size_t differing = reference_is_odd ? tasks - parted.size() : parted.size();
  Finding finding =
      Present(Severity::kWarning, "LossesDiffer",
              absl::StrCat(metric, " was the same to the last bit on all ", tasks, " tasks for ",
                           first.equal, " recorded steps. At step ", odd_point.step, " it is ",
                           odd_text, " on ", NameOf(odd), " and ", other_text, " on others; ",
                           differing, differing == 1 ? " task differs" : " tasks differ"));
  finding.since_ns = odd_point.time_ns;
  finding.step = odd_point.step;
  finding.figures = {{"tasks_differing", static_cast<double>(differing), "1"},
                     {"tasks", static_cast<double>(tasks), "1"},
                     {"majority_value", other_point.value, "1"},
                     {"minority_value", odd_point.value, "1"},
                     {"steps_equal", static_cast<double>(first.equal), "1"}};
  if (reference_is_odd) {
    finding.BlameTask(odd, 1, odd_point.step, metric);
    return finding;
  }
  for (const Parting& one : parted) finding.BlameTask(*one.task, 1, one.own->step, metric);
  return finding;
}

Finding JudgeLosses(const JobWindow& window) {
  const TaskWindow* reference = nullptr;
  std::string metric;
  std::vector<Point> points;
  std::vector<Parting> parted;
  size_t tasks = 0;
  for (const TaskWindow& task : window.tasks) {
    const Track* track = FindTrack(task.tracks, Signal::kLoss);
    if (track == nullptr || (reference != nullptr && track->metric != metric)) continue;
    ++tasks;
    std::vector<Point> own = EffectivePoints(track->points);
    if (reference == nullptr) {
      reference = &task;
      metric = track->metric;
      points = std::move(own);
      continue;
    }
    const Parting parting = Part(task, own, points);
    // Each task has a loss of its own, as most jobs do.
    if (parting.equal < kLeastEqualLosses || !parting.varies) return NotJudged();
    if (parting.now) parted.push_back(parting);
  }
  if (tasks < 2) return NotJudged();
  if (parted.empty()) return NotPresent();
  return OfPartings(metric, *reference, parted, tasks);
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
  Finding losses = JudgeLosses(window);
  if (losses.judged) result = std::move(losses);
  return result;
}

}  // namespace tacho::server::conditions
