#include "server/conditions/measures/suspects.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "proto/base/quantile.h"

namespace tacho::server::conditions {
namespace {

// A duty cycle or CPU share this far from the median is not noise.
constexpr double kChipsDiffer = 0.4;
constexpr double kCpuDiffers = 0.1;

struct TrackMean {
  double sum = 0;
  size_t count = 0;

  void Add(const Track* track, int64_t since_ns) {
    if (track == nullptr) return;
    for (auto point = track->points.rbegin(); point != track->points.rend(); ++point) {
      if (point->time_ns <= since_ns) break;
      if (!std::isfinite(point->value)) continue;
      sum += point->value;
      ++count;
    }
  }
  double value() const {
    if (count == 0) return std::numeric_limits<double>::quiet_NaN();
    return sum / static_cast<double>(count);
  }
};

std::map<std::string, double> ChipsBusy(const JobWindow& window, int64_t since_ns) {
  std::map<std::string, TrackMean> means;
  for (const ChipWindow& chip : window.chips) {
    means[chip.host].Add(FindTrack(chip.tracks, Signal::kChipBusy), since_ns);
  }
  std::map<std::string, double> busy;
  for (const auto& [host, mean] : means) busy[host] = mean.value();
  return busy;
}

// Marks those that differ from the median.
void MarkDiffering(std::vector<Suspect>* suspects, double Suspect::*value, bool Suspect::*mark,
                   double tolerance) {
  std::vector<double> known;
  for (const Suspect& suspect : *suspects) {
    if (std::isfinite(suspect.*value)) known.push_back(suspect.*value);
  }
  if (known.size() < 3) return;
  const double median = Median(std::move(known));
  for (Suspect& suspect : *suspects) {
    suspect.*mark = std::isfinite(suspect.*value) && std::abs(suspect.*value - median) > tolerance;
  }
}

// A sign that half of the suspects share shows nothing.
void ForgetIfCommon(std::vector<Suspect>* suspects, bool Suspect::*mark) {
  const auto marked = static_cast<size_t>(
      std::count_if(suspects->begin(), suspects->end(), [&](const Suspect& s) { return s.*mark; }));
  if (marked * 2 < suspects->size()) return;
  for (Suspect& suspect : *suspects) suspect.*mark = false;
}

// When a job is killed, the rows of its last step come from some tasks and not from others. Several
// hosts that are one step behind, and stopped with the rest, show nothing.
void ForgetIfWithinOneStep(double step, std::vector<Suspect>* suspects) {
  std::set<std::string> behind;
  for (const Suspect& suspect : *suspects) {
    if (!suspect.behind) continue;
    if (suspect.stopped_first ||
        static_cast<double>(suspect.task->last_step.value_or(-1)) < step - 1)
      return;
    behind.insert(suspect.task->host);
  }
  if (behind.size() < 2) return;
  for (Suspect& suspect : *suspects) suspect.behind = false;
}

// Agents send figures of their hosts every 10 s.
constexpr int64_t kAgentsSendWithinNs = 2'000'000'000;

// A host that lost its power stays connected for a while. Its agent has not been heard since the
// job stopped, unlike nearly all others.
void MarkQuietHosts(const JobWindow& window, int64_t since_ns, std::vector<Suspect>* suspects) {
  std::set<std::string> quiet;
  size_t known = 0;
  for (const HostWindow& host : window.hosts) {
    if (!host.agent.has_value()) continue;
    ++known;
    if (host.agent->last_heard_ns < since_ns + kAgentsSendWithinNs) quiet.insert(host.host);
  }
  if (quiet.size() > std::max<size_t>(1, known / 10) || quiet.size() * 2 >= known) return;
  for (Suspect& suspect : *suspects) {
    suspect.agent_silent = quiet.contains(suspect.task->host);
  }
}

// A host that lost its power says nothing of its tasks; that its agent fell silent with them does.
void AddSilentHosts(const JobWindow& window, const Hosts& hosts, int64_t since_ns,
                    double interval_seconds, std::vector<Suspect>* suspects) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::vector<Suspect> silent;
  for (const TaskWindow& task : window.tasks) {
    if (!task.lives() || !hosts.FellSilentAt(task.host, since_ns, 2 * interval_seconds)) continue;
    silent.push_back(
        {.task = &task, .chips_busy = kUnknown, .cpu_busy = kUnknown, .agent_silent = true});
  }
  if (silent.size() * 2 >= suspects->size()) return;
  suspects->insert(suspects->end(), silent.begin(), silent.end());
}

}  // namespace

std::vector<Suspect> FindSuspects(const JobWindow& window,
                                  const std::vector<const TaskWindow*>& tasks, const Hosts& hosts,
                                  int64_t since_ns, double interval_seconds) {
  // The first moments still belong to the step before.
  const int64_t settled_ns = since_ns + static_cast<int64_t>(2 * interval_seconds * 1e9);
  const std::map<std::string, double> chips = ChipsBusy(window, settled_ns);
  std::vector<double> steps;
  std::vector<double> times;
  for (const TaskWindow* task : tasks) {
    steps.push_back(static_cast<double>(task->last_step.value_or(-1)));
    times.push_back(static_cast<double>(hosts.Corrected(task->host, task->last_time_ns)) / 1e9);
  }
  const double step = Median(steps);
  const double time = Median(times);
  std::vector<Suspect> suspects;
  for (size_t i = 0; i < tasks.size(); ++i) {
    Suspect suspect{.task = tasks[i]};
    suspect.behind = steps[i] < step;
    suspect.stopped_first = times[i] < time - std::max(1.0, interval_seconds);
    const auto busy = chips.find(tasks[i]->host);
    suspect.chips_busy =
        busy == chips.end() ? std::numeric_limits<double>::quiet_NaN() : busy->second;
    TrackMean cpu;
    if (const HostWindow* host = hosts.Find(tasks[i]->host)) {
      cpu.Add(FindTrack(host->tracks, Signal::kHostCpuBusy), settled_ns);
    }
    suspect.cpu_busy = cpu.value();
    suspects.push_back(suspect);
  }
  ForgetIfWithinOneStep(step, &suspects);
  MarkDiffering(&suspects, &Suspect::chips_busy, &Suspect::chips_differ, kChipsDiffer);
  MarkDiffering(&suspects, &Suspect::cpu_busy, &Suspect::cpu_differs, kCpuDiffers);
  for (bool Suspect::*mark :
       {&Suspect::behind, &Suspect::stopped_first, &Suspect::chips_differ, &Suspect::cpu_differs}) {
    ForgetIfCommon(&suspects, mark);
  }
  MarkQuietHosts(window, since_ns, &suspects);
  AddSilentHosts(window, hosts, since_ns, interval_seconds, &suspects);
  std::stable_sort(suspects.begin(), suspects.end(), [](const Suspect& a, const Suspect& b) {
    return std::make_tuple(-a.score(), a.task->last_step.value_or(-1), a.task->last_time_ns) <
           std::make_tuple(-b.score(), b.task->last_step.value_or(-1), b.task->last_time_ns);
  });
  return suspects;
}

}  // namespace tacho::server::conditions
