// Chips are looked at one by one: where a host has a task for each chip, only one of them is idle.
#include "server/conditions/measures/lone_host.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

namespace tacho::server::conditions {
namespace {

// A figure may be a mean over the time since the one before.
constexpr int64_t kSettledNs = 10'000'000'000;
constexpr size_t kFigures = 2;  // Each chip needs so many since then.
constexpr size_t kHosts = 3;
constexpr double kIdle = 0.05;  // Mean duty cycles.
constexpr double kBusy = 0.9;
// A chip that was less busy than this before is not used, or used by something else.
constexpr double kUsed = 0.3;
constexpr size_t kBefore = 30;  // Figures from before that count.
constexpr double kCpuRises = 0.05;
// Figures of two hosts this far apart are of one moment.
constexpr int64_t kTogetherNs = 6'000'000'000;

struct Means {
  double before = 0;
  double since = 0;
  size_t figures_before = 0;
  size_t figures_since = 0;
};

// Over the newest figures from before `since_ns`, and over all that are settled.
Means MeansOf(const Track& track, int64_t since_ns) {
  Means means;
  for (auto point = track.points.rbegin(); point != track.points.rend(); ++point) {
    if (!std::isfinite(point->value)) continue;
    if (point->time_ns > since_ns + kSettledNs) {
      means.since += point->value;
      ++means.figures_since;
    } else if (point->time_ns <= since_ns) {
      if (means.figures_before == kBefore) break;
      means.before += point->value;
      ++means.figures_before;
    }
  }
  if (means.figures_since > 0) means.since /= static_cast<double>(means.figures_since);
  if (means.figures_before > 0) means.before /= static_cast<double>(means.figures_before);
  return means;
}

// Whether the chip was idle before while the other one was busy, for as long as now.
bool WasIdleAlone(const Track& idle, const Track& busy, int64_t since_ns) {
  size_t alone = 0;
  auto other = busy.points.begin();
  for (const Point& point : idle.points) {
    if (point.time_ns > since_ns) break;
    if (!(point.value <= kIdle)) {
      alone = 0;
      continue;
    }
    while (other != busy.points.end() && other->time_ns < point.time_ns - kTogetherNs) ++other;
    if (other == busy.points.end()) break;
    const bool together = std::abs(other->time_ns - point.time_ns) <= kTogetherNs;
    alone = together && other->value >= kBusy ? alone + 1 : 0;
    if (alone >= kFigures) return true;
  }
  return false;
}

const std::string* HostOfFirstTask(const JobWindow& window) {
  const TaskWindow* first = nullptr;
  for (const TaskWindow& task : window.tasks) {
    if (!task.task.has_value()) continue;
    if (first == nullptr || *task.task < *first->task) first = &task;
  }
  return first == nullptr ? nullptr : &first->host;
}

bool UsesMoreCores(const JobWindow& window, const std::string& name, int64_t since_ns) {
  const auto host =
      std::find_if(window.hosts.begin(), window.hosts.end(),
                   [&](const HostWindow& candidate) { return candidate.host == name; });
  if (host == window.hosts.end()) return false;
  const Track* const cpu = FindTrack(host->tracks, Signal::kHostCpuBusy);
  if (cpu == nullptr) return false;
  const Means means = MeansOf(*cpu, since_ns);
  return means.figures_since > 0 && means.figures_before > 0 &&
         means.since > means.before + kCpuRises;
}

}  // namespace

std::optional<std::string> HostWaitedFor(const JobWindow& window, int64_t since_ns) {
  const std::string* const first_host = HostOfFirstTask(window);
  if (first_host == nullptr) return std::nullopt;
  std::set<std::string> hosts;
  std::vector<const Track*> idle;
  const std::string* idle_host = nullptr;
  const Track* busy = nullptr;
  for (const ChipWindow& chip : window.chips) {
    const Track* const track = FindTrack(chip.tracks, Signal::kChipBusy);
    if (track == nullptr) continue;
    const Means means = MeansOf(*track, since_ns);
    if (means.figures_before == 0 || means.before < kUsed) continue;
    if (means.figures_since < kFigures) return std::nullopt;
    hosts.insert(chip.host);
    if (means.since >= kBusy) {
      if (busy == nullptr || chip.host != *first_host) busy = track;
    } else if (means.since <= kIdle && (idle_host == nullptr || *idle_host == chip.host)) {
      idle_host = &chip.host;
      idle.push_back(track);
    } else {
      return std::nullopt;
    }
  }
  if (hosts.size() < kHosts || idle_host == nullptr || busy == nullptr) return std::nullopt;
  if (*idle_host == *first_host || UsesMoreCores(window, *idle_host, since_ns)) return std::nullopt;
  const bool usual = std::any_of(idle.begin(), idle.end(), [&](const Track* track) {
    return WasIdleAlone(*track, *busy, since_ns);
  });
  if (usual) return std::nullopt;
  return *idle_host;
}

}  // namespace tacho::server::conditions
