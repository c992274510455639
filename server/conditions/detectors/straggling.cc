// Straggling: some hosts hold up all others, step after step.
//
// In synchronous training all tasks leave the barrier of a step together, so step times are equal
// and do not show who was late. The time before the barrier does, and so does the wait in it: the
// last task waits least.
//
// Definition. For each step that most tasks reported, the lateness of task i comes from what is
// recorded:
//   own time     own_i - median(own),  own = compute + data_wait  (compute recorded)
//   barrier      median(comm_wait) - comm_wait_i                  (only comm_wait)
//   input        data_wait_i - median(data_wait)                  (only data_wait)
//   step time    step_time_i - median(step_time)                  (nothing else; not synchronous)
// with medians over tasks. In each window of `window_steps` steps E_i is the median of the lateness
// of i, which one slow step does not move. A task straggles in a window if
//   E_i > k * max(1.4826 * MAD(E), 0.01 * T)  and  E_i > (min_ratio - 1) * T
// where T is the median of own, or of step_time (or the time between rows) where own is not
// recorded; and, if comm_wait is recorded, median(comm_wait) - comm_wait_i > 0.3 * E_i: it really
// comes late. A task is a straggler if it straggles in all of the newest `windows` windows. A host
// straggles if one of its tasks does; the culprit is its worst task.
//
// A task that is late now and then does not move a median. If no task straggles, the newest 400
// steps (fewer where there are many tasks) are counted instead. A step of a task is late if it is
// later than k standard deviations of a usual task's steps, and than (min_ratio - 1) * T. A task is
// late now and then if its late steps
//   cost at least min_lost of T times all of its steps, and 3 times what they cost 3 of 4 tasks;
//   came in 3 runs or more, over at least half of the steps, the newest within the last third;
//   show in the barrier, as above.
//
// Score: (T + E_i) / T, the median over the windows: 1.3 is 30 % slower than the peers. NVIDIA
// Resiliency Extension's score is its inverse (0.75 there is 1.33 here).
//
// Reasons: SlowCompute, SlowInput (the larger part of own time), LateAtBarrier, SlowSteps;
// NowAndThen; UnevenWork (info) if more than `uneven_share` of all hosts, and at least 3, are slow:
// that points to stages or sequences of uneven length rather than to hardware. A culprit that
// straggled in `chronic` other jobs or more is called chronic.
//
// Needs 3 tasks and windows * window_steps steps, with one of the signals above. With step_time
// alone nothing is judged while it is the same on all tasks. Limits: it does not show why a host is
// slow; Throttled, HardwareErrors and MemoryPressure may. Takes O(tasks * windows * window_steps *
// log).
//
// Sources. Section scores as ratios of medians, without collectives: NVIDIA Resiliency Extension,
// attribution/straggler/reporting.py. Order of arrival at the barrier, and that most slowness is no
// hardware fault: "Understanding Stragglers in Large Model Training" (OSDI'25). Heat maps of own
// time: MegaScale (NSDI'24). Median and MAD work while less than half are slow. With k = 6, the
// latest of 10,000 healthy tasks, 4 standard deviations late, is no straggler. Thresholds are ours.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/lateness.h"
#include "server/conditions/measures/lost_time.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

constexpr size_t kMinTasks = 3;
// Windows beyond those that must be late, to find when it began.
constexpr size_t kEarlierWindows = 5;
// The least standard deviation, as a share of a step: smaller lateness does not matter.
constexpr double kMinSigma = 0.01;
// The share of a task's lateness that must show in the barrier.
constexpr double kBarrierShare = 0.3;
// Step times that differ by less end at one barrier.
constexpr double kSameStepTimes = 0.02;

// Steps that are counted for those that are late now and then; and how many values that may be.
constexpr size_t kCountedSteps = 400;
constexpr size_t kCountedValues = 50'000;
constexpr size_t kLeastEpisodes = 3;
// How much more a culprit must cost than three of four tasks.
constexpr double kMoreThanOthers = 3;

// One task over the newest windows.
struct Straggler {
  size_t task = 0;
  size_t windows = 0;  // In a row, up to the newest.
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
      return "its own time before the barrier";
    case LatenessSource::kBarrier:
      return "its wait in the barrier";
    case LatenessSource::kInput:
      return "its wait for input";
    default:
      return "its step time";
  }
}

// The start of each whole window, the newest first.
std::vector<size_t> WindowStarts(size_t steps, size_t window_steps) {
  TACHO_CHECK(window_steps > 0);
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
                                      const Progress::Straggling& settings) {
  const size_t tasks = lateness.late.tasks();
  std::vector<Straggler> all(tasks);
  std::vector<std::vector<double>> late(tasks);
  std::vector<bool> going(tasks, true);
  for (const size_t begin : WindowStarts(lateness.steps.size(), settings.window_steps())) {
    const size_t end = begin + settings.window_steps();
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
      going[task] = going[task] && excess > settings.k() * sigma &&
                    excess > (settings.min_ratio() - 1) * lateness.typical &&
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
    if (all[task].windows < settings.windows()) continue;
    all[task].late = Median(late[task]);
    found.push_back(all[task]);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Straggler& a, const Straggler& b) { return a.late > b.late; });
  return found;
}

// Both lists have the worst first.
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

// Whether step times alone are recorded, and are the same on all tasks.
bool OnlyEqualStepTimes(const Lateness& lateness) {
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

// `hosts` are not empty.
std::string Describe(const JobWindow& window, const Lateness& lateness,
                     const std::vector<SlowHost>& hosts, const Progress::Straggling& settings) {
  const SlowHost& first = hosts.front();
  std::string text = absl::StrCat(first.host);
  const auto& task = window.tasks[first.worst.task].task;
  if (task.has_value()) absl::StrAppend(&text, " (task ", *task, ")");
  absl::StrAppendFormat(&text, " is %.3g s late in each step, %.0f%% of the %.3g s of its peers",
                        first.worst.late, 100 * first.worst.late / lateness.typical,
                        lateness.typical);
  absl::StrAppend(&text, ", judged by ", SourceWords(lateness.source));
  if (hosts.size() > 1) {
    absl::StrAppend(&text, "; ", hosts.size() - 1,
                    hosts.size() == 2 ? " more host is slow" : " more hosts are slow");
  }
  const uint32_t elsewhere = Elsewhere(window, first.host);
  if (elsewhere >= settings.chronic()) {
    absl::StrAppend(&text, "; the host is chronic: it straggled in ", elsewhere, " other jobs");
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

bool IsUneven(const JobWindow& window, size_t slow_hosts, double uneven_share) {
  return slow_hosts >= 3 &&
         static_cast<double>(slow_hosts) > uneven_share * static_cast<double>(HostsOf(window));
}

void AddFigures(const JobWindow& window, const Lateness& lateness,
                const std::vector<Straggler>& stragglers, const std::vector<SlowHost>& hosts,
                const Progress::Straggling& settings, Finding* finding) {
  double chronic = 0;
  for (const SlowHost& host : hosts) {
    if (Elsewhere(window, host.host) >= settings.chronic()) ++chronic;
    finding->BlameTask(window.tasks[host.worst.task],
                       (lateness.typical + host.worst.late) / lateness.typical, finding->step);
  }
  const Straggler& worst = hosts.front().worst;
  finding->figures = {
      {"peers_median", lateness.typical, "s"},
      {"lateness", worst.late, "s"},
      {"deviations", worst.sigmas, "1"},
      {"threshold_deviations", settings.k(), "1"},
      {"threshold_ratio", settings.min_ratio(), "1"},
      {"windows", static_cast<double>(worst.windows), "1"},
      {"straggling_tasks", static_cast<double>(stragglers.size()), "1"},
      {"straggling_hosts", static_cast<double>(hosts.size()), "1"},
      {"hosts", static_cast<double>(HostsOf(window)), "1"},
      {"chronic_hosts", chronic, "1"},
      {"straggles_elsewhere", static_cast<double>(Elsewhere(window, hosts.front().host)), "1"}};
}

// In the barrier of its late steps, too, if that is recorded.
bool LostInBarrier(const Lateness& lateness, const LostTime& lost) {
  if (lateness.source != LatenessSource::kOwnTime) return true;
  double shorter = 0;
  double late = 0;
  for (size_t step = lost.first_late; step <= lost.newest_late; ++step) {
    const double wait = lateness.barrier.at(lost.task, step);
    if (!std::isfinite(wait) || !(lateness.late.at(lost.task, step) > 0)) continue;
    shorter += wait;
    late += lateness.late.at(lost.task, step);
  }
  return late == 0 || shorter > kBarrierShare * late;
}

// Those that are late now and then, the most expensive first.
std::vector<LostTime> FindNowAndThen(const Lateness& lateness,
                                     const Progress::Straggling& settings) {
  std::vector<LostTime> all = MeasureLostTime(lateness, settings.k(), settings.min_ratio() - 1);
  if (all.size() < kMinTasks) return {};
  std::vector<double> shares;
  for (const LostTime& lost : all) shares.push_back(lost.share);
  const double usual = Quantile(std::move(shares), 0.75);
  const size_t steps = lateness.steps.size();
  std::erase_if(all, [&](const LostTime& lost) {
    return lost.share < settings.min_lost() || lost.share <= kMoreThanOthers * usual ||
           lost.episodes < kLeastEpisodes || (lost.newest_late - lost.first_late) * 2 < steps ||
           lost.newest_late * 3 < steps * 2 || !LostInBarrier(lateness, lost);
  });
  std::stable_sort(all.begin(), all.end(),
                   [](const LostTime& a, const LostTime& b) { return a.share > b.share; });
  return all;
}

Finding DetectNowAndThen(const JobWindow& window, const Progress::Straggling& settings) {
  const size_t least = settings.window_steps() * (settings.windows() + kEarlierWindows);
  const size_t counted =
      std::max(least, std::min(kCountedSteps, kCountedValues / window.tasks.size()));
  const Lateness lateness = MeasureLateness(window, counted);
  if (lateness.steps.size() < least || !(lateness.typical > 0)) return NotPresent();
  const std::vector<LostTime> found = FindNowAndThen(lateness, settings);
  if (found.empty()) return NotPresent();
  const LostTime& first = found.front();
  const TaskWindow& task = window.tasks[first.task];
  Finding finding =
      Present(Severity::kWarning, "NowAndThen",
              absl::StrFormat(
                  "%s%s is late now and then: in %d of %d steps, by %.3g s in all, %.0f%% of "
                  "the time; judged by %s",
                  task.host, task.task.has_value() ? absl::StrCat(" (task ", *task.task, ")") : "",
                  first.late_steps, lateness.steps.size(), first.seconds, 100 * first.share,
                  SourceWords(lateness.source)));
  finding.step = lateness.steps[first.first_late];
  finding.since_ns = TimeOfStep(window, first.task, *finding.step);
  finding.figures = {{"peers_median", lateness.typical, "s"},
                     {"late_steps", static_cast<double>(first.late_steps), "1"},
                     {"steps", static_cast<double>(lateness.steps.size()), "1"},
                     {"runs", static_cast<double>(first.episodes), "1"},
                     {"seconds_lost", first.seconds, "s"},
                     {"share_lost", first.share, "1"},
                     {"threshold_share", settings.min_lost(), "1"}};
  std::set<std::string> hosts;
  for (const LostTime& lost : found) {
    if (!hosts.insert(window.tasks[lost.task].host).second) continue;
    finding.BlameTask(window.tasks[lost.task], 1 + lost.share, finding.step);
  }
  return finding;
}

}  // namespace

Finding DetectStraggling(const JobWindow& window, const Progress::Straggling& settings) {
  if (window.ended) return NotPresent();
  if (window.tasks.size() < kMinTasks) return NotJudged();
  const size_t window_steps = std::max<size_t>(1, settings.window_steps());
  const Lateness lateness =
      MeasureLateness(window, window_steps * (settings.windows() + kEarlierWindows));
  if (lateness.source == LatenessSource::kNone ||
      lateness.steps.size() < window_steps * settings.windows() || !(lateness.typical > 0) ||
      OnlyEqualStepTimes(lateness)) {
    return NotJudged();
  }
  const std::vector<Straggler> stragglers = FindStragglers(lateness, settings);
  if (stragglers.empty()) return DetectNowAndThen(window, settings);
  const std::vector<SlowHost> hosts = ByHost(window, stragglers);
  const Straggler& worst = hosts.front().worst;

  std::string message = Describe(window, lateness, hosts, settings);
  const bool uneven = IsUneven(window, hosts.size(), settings.uneven_share());
  if (uneven) {
    absl::StrAppend(&message, "; so many at once mean uneven stages or inputs, not slow hosts");
  }
  Finding finding = Present(uneven ? Severity::kInfo : Severity::kWarning,
                            uneven ? "UnevenWork" : ReasonOf(lateness, worst), std::move(message));
  TACHO_CHECK(worst.windows * window_steps <= lateness.steps.size());
  finding.step = lateness.steps[lateness.steps.size() - worst.windows * window_steps];
  finding.since_ns = TimeOfStep(window, worst.task, *finding.step);
  AddFigures(window, lateness, stragglers, hosts, settings, &finding);
  return finding;
}

}  // namespace tacho::server::conditions
