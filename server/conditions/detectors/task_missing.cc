#include "server/conditions/detectors/task_missing.h"

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
#include "server/conditions/measures/heard.h"
#include "server/conditions/measures/step_times.h"

namespace tacho::server::conditions {
namespace {

constexpr uint32_t kMaxTasks = 1'000'000;  // An attribute that says more is a mistake.
constexpr double kRowsFactor = 5;

enum class Kind : uint8_t { kGone = 1, kGap = 2, kNeverSeen = 3 };

struct Missing {
  uint32_t task = 0;
  Kind kind = Kind::kGone;
  const TaskWindow* seen = nullptr;  // If it ever was.
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

// Numbers that nobody has, in [from, to), at most as many as `count`.
void AddHoles(const std::set<uint32_t>& seen, uint32_t from, uint32_t to, size_t count, Kind kind,
              std::vector<Missing>* missing) {
  for (uint32_t task = from; task < to && count > 0; ++task) {
    if (seen.contains(task)) continue;
    missing->push_back({.task = task, .kind = kind, .seen = nullptr});
    --count;
  }
}

// When half of those that are there had been seen.
int64_t HalfSeen(const JobWindow& window, const Hosts& hosts) {
  std::vector<int64_t> first;
  for (const TaskWindow& task : window.tasks) {
    first.push_back(hosts.Corrected(task.host, task.first_time_ns));
  }
  const auto middle = first.begin() + static_cast<std::ptrdiff_t>(first.size() / 2);
  std::nth_element(first.begin(), middle, first.end());
  return *middle;
}

void AddGone(const JobWindow& window, const Hosts& hosts, double gone_after,
             std::vector<Missing>* missing) {
  std::vector<Missing> gone;
  size_t sending = 0;
  for (const TaskWindow& task : window.tasks) {
    if (task.ended || !task.task.has_value() || hosts.Unheard(task.host)) continue;
    const int64_t silent_ns = window.now_ns - hosts.Corrected(task.host, task.last_time_ns);
    if (static_cast<double>(silent_ns) / 1e9 <= gone_after) {
      ++sending;
    } else {
      gone.push_back({.task = *task.task, .kind = Kind::kGone, .seen = &task});
    }
  }
  if (sending >= gone.size()) missing->insert(missing->end(), gone.begin(), gone.end());
}

}  // namespace

Finding DetectTaskMissing(const JobWindow& window, const TaskMissingSettings& settings) {
  if (window.ended) return NotPresent();
  std::set<uint32_t> seen;
  for (const TaskWindow& task : window.tasks) {
    if (task.task.has_value()) seen.insert(*task.task);
  }
  if (seen.empty()) return NotJudged();
  const Hosts hosts(window);
  std::vector<Missing> missing;
  const std::optional<uint32_t> expected = Expected(window);
  if (window.now_ns - HalfSeen(window, hosts) > absl::ToInt64Nanoseconds(settings.grace)) {
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
  const double gone_after =
      std::max(absl::ToDoubleSeconds(settings.gone_after), kRowsFactor * ProgressInterval(window));
  AddGone(window, hosts, gone_after, &missing);
  if (missing.empty()) return NotPresent();

  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  const Missing& first = missing.front();
  finding.reason = Word(first.kind);
  if (first.seen != nullptr) finding.since_ns = first.seen->last_time_ns;
  for (const Missing& one : missing) {
    if (finding.culprits.size() == kMaxCulprits) break;
    finding.culprits.push_back({.task = one.task,
                                .host = one.seen == nullptr ? "" : one.seen->host,
                                .chip = "",
                                .metric = "",
                                .step = one.seen == nullptr ? std::nullopt : one.seen->last_step,
                                .score = static_cast<double>(one.kind)});
  }
  finding.figures = {{"tasks_seen", static_cast<double>(seen.size()), "1"},
                     {"tasks_never_seen", static_cast<double>(never), "1"},
                     {"tasks_gone", static_cast<double>(missing.size() - never), "1"},
                     {"gone_after", gone_after, "s"}};
  if (expected.has_value()) {
    finding.figures.push_back({"tasks_expected", static_cast<double>(*expected), "1"});
  }
  finding.message = absl::StrFormat("%d tasks are missing; task %d ", missing.size(), first.task);
  if (first.seen == nullptr) {
    absl::StrAppend(&finding.message, "was never seen");
  } else {
    absl::StrAppendFormat(&finding.message, "of %s sent its last row %.0f s ago", first.seen->host,
                          static_cast<double>(window.now_ns - first.seen->last_time_ns) / 1e9);
    if (first.seen->last_step.has_value()) {
      absl::StrAppend(&finding.message, ", at step ", *first.seen->last_step);
    }
  }
  return finding;
}

}  // namespace tacho::server::conditions
