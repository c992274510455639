#include "server/conditions/detectors/straggling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/conditions/measures/lateness.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

constexpr size_t kMinTasks = 3;
// More windows than must be late: to say since when it is so.
constexpr size_t kEarlierWindows = 5;
// Lateness below this share of a step is never worth a word, however quiet the peers are.
constexpr double kMinSigma = 0.01;
// Of a task's lateness, how much must show in the barrier.
constexpr double kBarrierShare = 0.3;
// Step times that differ by less are those of one barrier.
constexpr double kSameStepTimes = 0.02;

// One task over the newest windows.
struct Straggler {
  size_t task = 0;
  size_t windows = 0;  // In a row, until the newest.
  double late = 0;     // Seconds, the median of those windows.
  double sigmas = 0;   // The least of them.
};

// A host with its worst task.
struct SlowHost {
  std::string host;
  Straggler worst;
  size_t tasks = 0;
};

const char* SourceWords(LatenessSource source) {
  switch (source) {
    case LatenessSource::kOwnTime:
      return "own time before the barrier";
    case LatenessSource::kBarrier:
      return "wait in the barrier";
    case LatenessSource::kInput:
      return "wait for input";
    default:
      return "step time";
  }
}

// Where each window begins, the newest first; the oldest may be left out if it is not whole.
std::vector<size_t> WindowStarts(size_t steps, size_t window_steps) {
  std::vector<size_t> starts;
  for (size_t end = steps; end >= window_steps; end -= window_steps) {
    starts.push_back(end - window_steps);
  }
  return starts;
}

// Late in the barrier too, if that is recorded.
bool ShowsInBarrier(const Lateness& lateness, size_t task, size_t begin, size_t end, double late) {
  if (lateness.source != LatenessSource::kOwnTime) return true;
  const double shorter = lateness.barrier.Over(task, begin, end);
  return !std::isfinite(shorter) || shorter > kBarrierShare * late;
}

std::vector<Straggler> FindStragglers(const Lateness& lateness,
                                      const StragglingSettings& settings) {
  const size_t tasks = lateness.late.tasks();
  std::vector<Straggler> all(tasks);
  std::vector<std::vector<double>> late(tasks);
  std::vector<bool> going(tasks, true);
  for (const size_t begin : WindowStarts(lateness.steps.size(), settings.window_steps)) {
    const size_t end = begin + settings.window_steps;
    std::vector<double> over(tasks);
    std::vector<double> known;
    for (size_t task = 0; task < tasks; ++task) {
      over[task] = lateness.late.Over(task, begin, end);
      if (std::isfinite(over[task])) known.push_back(over[task]);
    }
    if (known.size() < kMinTasks) break;
    const double center = Median(known);
    const double sigma = std::max(ScaledMad(known, center), kMinSigma * lateness.typical);
    for (size_t task = 0; task < tasks; ++task) {
      const double excess = over[task] - center;
      going[task] = going[task] && excess > settings.k * sigma &&
                    excess > (settings.min_ratio - 1) * lateness.typical &&
                    ShowsInBarrier(lateness, task, begin, end, excess);
      if (!going[task]) continue;
      Straggler& straggler = all[task];
      straggler.sigmas =
          straggler.windows == 0 ? excess / sigma : std::min(straggler.sigmas, excess / sigma);
      straggler.task = task;
      ++straggler.windows;
      late[task].push_back(excess);
    }
  }
  std::vector<Straggler> found;
  for (size_t task = 0; task < tasks; ++task) {
    if (all[task].windows < settings.windows) continue;
    all[task].late = Median(late[task]);
    found.push_back(all[task]);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Straggler& a, const Straggler& b) { return a.late > b.late; });
  return found;
}

// `stragglers` are the worst first, and so are the hosts.
std::vector<SlowHost> ByHost(const JobWindow& window, const std::vector<Straggler>& stragglers) {
  std::vector<SlowHost> hosts;
  std::map<std::string, size_t> known;
  for (const Straggler& straggler : stragglers) {
    const std::string& host = window.tasks[straggler.task].host;
    const auto [entry, is_new] = known.emplace(host, hosts.size());
    if (is_new) hosts.push_back({.host = host, .worst = straggler, .tasks = 0});
    ++hosts[entry->second].tasks;
  }
  return hosts;
}

size_t HostsOf(const JobWindow& window) {
  std::map<std::string, bool> hosts;
  for (const TaskWindow& task : window.tasks) hosts.emplace(task.host, true);
  return hosts.size();
}

std::string ReasonOf(const Lateness& lateness, const Straggler& worst) {
  switch (lateness.source) {
    case LatenessSource::kBarrier:
      return "LateAtBarrier";
    case LatenessSource::kInput:
      return "SlowInput";
    case LatenessSource::kOwnTime: {
      const size_t steps = lateness.steps.size();
      const size_t count = std::min(steps, steps / 2 + 1);
      const double input = lateness.input.Over(worst.task, steps - count, steps);
      return input > worst.late / 2 ? "SlowInput" : "SlowCompute";
    }
    default:
      return "SlowSteps";
  }
}

// Synchronous training of which step times are all that is recorded.
bool NothingToTellBy(const Lateness& lateness) {
  if (lateness.source != LatenessSource::kStepTime) return false;
  for (size_t task = 0; task < lateness.late.tasks(); ++task) {
    const double late = lateness.late.Over(task, 0, lateness.steps.size());
    if (std::isfinite(late) && std::abs(late) > kSameStepTimes * lateness.typical) return false;
  }
  return true;
}

uint32_t Elsewhere(const JobWindow& window, const std::string& host) {
  const auto found = window.straggles_elsewhere.find(host);
  return found == window.straggles_elsewhere.end() ? 0 : found->second;
}

std::string Describe(const JobWindow& window, const Lateness& lateness,
                     const std::vector<SlowHost>& hosts, const StragglingSettings& settings) {
  const SlowHost& first = hosts.front();
  std::string text = absl::StrCat(first.host);
  const auto& task = window.tasks[first.worst.task].task;
  if (task.has_value()) absl::StrAppend(&text, " (task ", *task, ")");
  absl::StrAppendFormat(&text, " comes %.3g s later to each step than its peers, %.0f%% of %.3g s",
                        first.worst.late, 100 * first.worst.late / lateness.typical,
                        lateness.typical);
  absl::StrAppend(&text, ", by ", SourceWords(lateness.source));
  if (hosts.size() > 1) absl::StrAppend(&text, "; ", hosts.size() - 1, " more hosts are slow");
  const uint32_t elsewhere = Elsewhere(window, first.host);
  if (elsewhere >= settings.chronic) {
    absl::StrAppend(&text, "; it is chronic: found straggling in ", elsewhere, " other jobs");
  }
  return text;
}

int64_t TimeOfStep(const JobWindow& window, size_t task, int64_t step) {
  const Track* track = nullptr;
  for (const Signal signal :
       {Signal::kCompute, Signal::kCommWait, Signal::kDataWait, Signal::kStepTime}) {
    if (track == nullptr) track = FindTrack(window.tasks[task].tracks, signal);
  }
  if (track == nullptr) return 0;
  for (const Point& point : track->points) {
    if (point.step >= step && point.step != kNoPointStep) return point.time_ns;
  }
  return 0;
}

void AddFigures(const JobWindow& window, const Lateness& lateness,
                const std::vector<Straggler>& stragglers, const std::vector<SlowHost>& hosts,
                const StragglingSettings& settings, Finding* finding) {
  double chronic = 0;
  for (const SlowHost& host : hosts) {
    if (Elsewhere(window, host.host) >= settings.chronic) ++chronic;
    if (finding->culprits.size() == kMaxCulprits) continue;
    finding->culprits.push_back({.task = window.tasks[host.worst.task].task,
                                 .host = host.host,
                                 .chip = "",
                                 .metric = "",
                                 .step = finding->step,
                                 .score = (lateness.typical + host.worst.late) / lateness.typical});
  }
  const Straggler& worst = hosts.front().worst;
  finding->figures = {
      {"peers_median", lateness.typical, "s"},
      {"lateness", worst.late, "s"},
      {"deviations", worst.sigmas, "1"},
      {"threshold_deviations", settings.k, "1"},
      {"threshold_ratio", settings.min_ratio, "1"},
      {"windows", static_cast<double>(worst.windows), "1"},
      {"straggling_tasks", static_cast<double>(stragglers.size()), "1"},
      {"straggling_hosts", static_cast<double>(hosts.size()), "1"},
      {"hosts", static_cast<double>(HostsOf(window)), "1"},
      {"chronic_hosts", chronic, "1"},
      {"straggles_elsewhere", static_cast<double>(Elsewhere(window, hosts.front().host)), "1"}};
}

}  // namespace

Finding DetectStraggling(const JobWindow& window, const StragglingSettings& settings) {
  if (window.ended) return NotPresent();
  if (window.tasks.size() < kMinTasks) return NotJudged();
  const size_t window_steps = std::max<size_t>(1, settings.window_steps);
  const Lateness lateness =
      MeasureLateness(window, window_steps * (settings.windows + kEarlierWindows));
  if (lateness.source == LatenessSource::kNone ||
      lateness.steps.size() < window_steps * settings.windows || !(lateness.typical > 0) ||
      NothingToTellBy(lateness)) {
    return NotJudged();
  }
  const std::vector<Straggler> stragglers = FindStragglers(lateness, settings);
  if (stragglers.empty()) return NotPresent();
  const std::vector<SlowHost> hosts = ByHost(window, stragglers);
  const Straggler& worst = hosts.front().worst;

  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  finding.reason = ReasonOf(lateness, worst);
  finding.step = lateness.steps[lateness.steps.size() - worst.windows * window_steps];
  finding.since_ns = TimeOfStep(window, worst.task, *finding.step);
  AddFigures(window, lateness, stragglers, hosts, settings, &finding);
  finding.message = Describe(window, lateness, hosts, settings);
  const auto all_hosts = static_cast<double>(HostsOf(window));
  if (hosts.size() >= 3 && static_cast<double>(hosts.size()) > settings.uneven_share * all_hosts) {
    finding.reason = "UnevenWork";
    finding.severity = Severity::kInfo;
    absl::StrAppend(&finding.message,
                    "; so many at once are rather uneven stages or inputs than slow hosts");
  }
  return finding;
}

}  // namespace tacho::server::conditions
