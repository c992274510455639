// The memory of a WindowBuilder: finds the track of a series, and keeps all tracks within their
// limits. The room of a series depends on how many there are, so that a large fleet gets short
// windows of all tasks rather than long windows of some.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "server/conditions/window/track_points.h"
#include "server/conditions/window/window_builder.h"
#include "server/conditions/window/window_builder_state.h"

namespace tacho::server::conditions {
namespace {

constexpr uint64_t kLeadersShare = 8;
// Cached meanings. Beyond this number of names the cache is emptied.
constexpr size_t kMaxMeanings = 4096;

// "loss", or "loss{head=a}" where labels other than those of chips and hosts distinguish series.
std::string NameOf(const storage::Series& series) {
  std::string labels;
  for (const auto& [name, value] : *series.labels) {
    if (name == "host" || name == "chip") continue;
    absl::StrAppend(&labels, labels.empty() ? "" : ",", std::string(name), "=", std::string(value));
  }
  if (labels.empty()) return series.metric->name;
  return absl::StrCat(series.metric->name, "{", labels, "}");
}

bool IsChipSignal(Signal signal) {
  return signal >= Signal::kChipBusy && signal < Signal::kHostMemoryAvailable;
}

uint64_t BytesOf(const std::vector<Point>& points) { return points.capacity() * sizeof(Point); }

}  // namespace

bool WindowBuilder::IsHostSignal(Signal signal) {
  return signal >= Signal::kChipBusy && signal <= Signal::kHostCpuBusy;
}

std::optional<SignalMatch> WindowBuilder::Meaning(const storage::Series& series) {
  if (series.metric->type == storage::MetricType::kHistogram) return std::nullopt;
  const std::string& name = series.metric->name;
  if (const auto known = meanings_.find(name); known != meanings_.end()) return known->second;
  if (meanings_.size() >= kMaxMeanings) meanings_.clear();
  return meanings_.emplace(name, names_.Find(name)).first->second;
}

WindowBuilder::Target WindowBuilder::MakeTarget(const storage::Series& series,
                                                const SignalMatch& match, JobState* job,
                                                TaskWindow* task) {
  Target target;
  target.factor = match.factor;
  target.of_host = IsHostSignal(match.signal);
  Tracks* const tracks = target.of_host ? HostTracks(series, match.signal) : &task->tracks;
  if (tracks == nullptr) return target;
  target.track = FindOrAddTrack(series, match, target.of_host ? nullptr : &job->tracks, tracks);
  return target;
}

Tracks* WindowBuilder::HostTracks(const storage::Series& series, Signal signal) {
  absl::string_view name = series.labels->Find("host");
  if (name.empty()) name = series.source->host;
  if (name.empty()) return nullptr;
  auto found = hosts_.find(name);
  if (found == hosts_.end()) {
    auto state = std::make_unique<HostState>();
    state->window.host = std::string(name);
    found = hosts_.emplace(std::string(name), std::move(state)).first;
  }
  HostState& host = *found->second;
  if (!IsChipSignal(signal)) return &host.window.tracks;
  std::string chip(series.labels->Find("chip"));
  // A trainer that says nothing of chips means its own.
  if (chip.empty() && series.source->task) chip = absl::StrCat("task ", *series.source->task);
  const auto at = std::lower_bound(
      host.chips.begin(), host.chips.end(), chip,
      [](const ChipWindow& c, const std::string& wanted) { return c.chip < wanted; });
  if (at != host.chips.end() && at->chip == chip) return &at->tracks;
  ChipWindow added;
  added.host = host.window.host;
  added.chip = std::move(chip);
  ++epoch_;
  return &host.chips.insert(at, std::move(added))->tracks;
}

Track* WindowBuilder::FindOrAddTrack(const storage::Series& series, const SignalMatch& match,
                                     uint64_t* of_job, Tracks* tracks) {
  const std::string name = NameOf(series);
  const auto known = tracks->find(match.signal);
  if (known != tracks->end()) {
    for (Track& track : known->second) {
      if (track.metric == name) return &track;
    }
    if (known->second.size() >= kMaxTracksOfSignal) return nullptr;
  }
  constexpr uint64_t kLeast = kMinPoints * sizeof(Point);
  // Counts the new track before others are thinned out.
  if (tracks_ >= limits_.total_bytes / (kLeast + sizeof(Point))) return nullptr;
  if (of_job != nullptr && *of_job >= limits_.job_bytes / kLeast) return nullptr;
  std::vector<Track>& all = (*tracks)[match.signal];
  const auto rank = [&](const Track& track) {
    const auto found = names_.Find(track.metric.substr(0, track.metric.find('{')));
    return found ? found->rank : UINT32_MAX;
  };
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const Track& track) { return rank(track) > match.rank; });
  // The first track of a signal moves no other.
  if (!all.empty()) ++epoch_;
  ++tracks_;
  if (of_job != nullptr) ++*of_job;
  return &*all.insert(at, Track{name, {}});
}

size_t WindowBuilder::PointsOf(const JobState* job, const TaskWindow* task) const {
  const uint64_t all = limits_.total_bytes / sizeof(Point);
  // An eighth is reserved for the larger share of lowest tasks.
  uint64_t share = (all - all / 8) / std::max<uint64_t>(tracks_, 1);
  const bool crowded = share <= kMinPoints;
  if (task != nullptr) {
    share = std::min(share, limits_.job_bytes / sizeof(Point) / std::max<uint64_t>(job->tracks, 1));
    if (!crowded && task->task == job->lowest_task) share *= kLeadersShare;
  }
  return std::clamp<uint64_t>(share, kMinPoints, limits_.points);
}

void WindowBuilder::MakeRoom(size_t most, size_t coming, std::vector<Point>* points) {
  if (points->size() > most) return ThinPoints(most, points);
  const auto fits = [&](size_t room) {
    return bytes_ - BytesOf(*points) + room * sizeof(Point) <= limits_.total_bytes;
  };
  size_t wanted = std::min(std::max<size_t>(8, 2 * points->size()), most + 1);
  // The same size as growth step by step, without the copies on the way.
  size_t at_once = wanted;
  while (at_once < std::min(points->size() + coming, most + 1)) {
    at_once = std::min(2 * at_once, most + 1);
  }
  if (fits(at_once)) {
    wanted = at_once;
  } else if (!fits(wanted)) {
    if (points->size() > kMinPoints) return ThinPoints(points->size() - 1, points);
    ShrinkAll();
    wanted = kMinPoints + 1;
  }
  const uint64_t before = BytesOf(*points);
  points->reserve(wanted);
  bytes_ += BytesOf(*points) - before;
}

void WindowBuilder::ShrinkAll() {
  // Frees a fifth, so that this is rare, unless all tracks have the minimum.
  const uint64_t share =
      limits_.total_bytes / sizeof(Point) / 5 * 4 / std::max<uint64_t>(tracks_, 1);
  const size_t most =
      std::clamp<uint64_t>(share, kMinPoints + 1, std::max(limits_.points, kMinPoints + 1)) - 1;
  for (const auto& [name, job] : jobs_) {
    for (TaskWindow& task : job->window.tasks) ShrinkTracks(most, &task.tracks);
  }
  for (const auto& [name, host] : hosts_) {
    ShrinkTracks(most, &host->window.tracks);
    for (ChipWindow& chip : host->chips) ShrinkTracks(most, &chip.tracks);
  }
}

void WindowBuilder::Add(const Target& target, size_t most, size_t coming, const Point& point) {
  TACHO_CHECK(target.track != nullptr);
  std::vector<Point>& points = target.track->points;
  if (points.size() == points.capacity()) MakeRoom(most, coming, &points);
  AddPoint(point, most, &points);
}

void WindowBuilder::ShrinkTracks(size_t most, Tracks* tracks) {
  for (auto& [signal, all] : *tracks) {
    for (Track& track : all) {
      if (track.points.capacity() <= most + 1) continue;
      const uint64_t before = BytesOf(track.points);
      ThinPoints(most, &track.points);
      track.points.shrink_to_fit();
      bytes_ -= before - BytesOf(track.points);
    }
  }
}

void WindowBuilder::Rebalance(JobState* job) {
  const bool much = bytes_ > limits_.total_bytes - limits_.total_bytes / 16;
  if (!much && job->tracks == job->balanced_tracks) return;
  job->balanced_tracks = job->tracks;
  for (TaskWindow& task : job->window.tasks) ShrinkTracks(PointsOf(job, &task), &task.tracks);
}

void WindowBuilder::Uncount(const Tracks& tracks, uint64_t* of_job) {
  for (const auto& [signal, all] : tracks) {
    TACHO_CHECK(tracks_ >= all.size());
    tracks_ -= all.size();
    if (of_job != nullptr) *of_job -= all.size();
    for (const Track& track : all) bytes_ -= BytesOf(track.points);
  }
}

void WindowBuilder::BorrowHosts(int64_t now_ns, const ingest::AgentLedger* agents,
                                JobWindow* window) {
  std::set<absl::string_view> names;
  for (const TaskWindow& task : window->tasks) {
    if (!task.host.empty()) names.insert(task.host);
  }
  const int64_t oldest_ns = now_ns - absl::ToInt64Nanoseconds(limits_.host_window);
  const auto trim = [&](Tracks* tracks) {
    for (auto& [signal, all] : *tracks) {
      for (Track& track : all) DropPointsBefore(oldest_ns, &track.points);
    }
    ShrinkTracks(PointsOf(nullptr, nullptr), tracks);
  };
  std::set<absl::string_view> imported;
  for (const absl::string_view name : names) {
    HostWindow& host = window->hosts.emplace_back();
    const auto found = hosts_.find(name);
    if (found == hosts_.end()) {
      host.host = std::string(name);
    } else {
      host = std::move(found->second->window);
      trim(&host.tracks);
      for (ChipWindow& chip : found->second->chips) {
        trim(&chip.tracks);
        window->chips.push_back(std::move(chip));
      }
      found->second->chips.clear();
    }
    if (agents == nullptr) continue;
    host.agent = agents->Find(host.host, oldest_ns);
    host.imported = !host.agent.has_value() && agents->IsImported(host.host);
    if (host.imported) imported.insert(name);
  }
  for (TaskWindow& task : window->tasks) task.imported = imported.contains(task.host);
}

void WindowBuilder::ReturnHosts(JobWindow* window) {
  for (HostWindow& host : window->hosts) {
    const auto found = hosts_.find(host.host);
    if (found != hosts_.end()) found->second->window = std::move(host);
  }
  for (ChipWindow& chip : window->chips) {
    const auto found = hosts_.find(chip.host);
    if (found != hosts_.end()) found->second->chips.push_back(std::move(chip));
  }
  window->hosts.clear();
  window->chips.clear();
}

void WindowBuilder::ForgetHostsBefore(int64_t time_ns) {
  const auto newest = [](const Tracks& tracks) {
    int64_t last_ns = INT64_MIN;
    for (const auto& [signal, all] : tracks) {
      for (const Track& track : all) {
        if (!track.empty()) last_ns = std::max(last_ns, track.points.back().time_ns);
      }
    }
    return last_ns;
  };
  for (auto it = hosts_.begin(); it != hosts_.end();) {
    HostState& host = *it->second;
    int64_t last_ns = newest(host.window.tracks);
    for (const ChipWindow& chip : host.chips) last_ns = std::max(last_ns, newest(chip.tracks));
    if (last_ns >= time_ns) {
      ++it;
      continue;
    }
    Uncount(host.window.tracks, nullptr);
    for (const ChipWindow& chip : host.chips) Uncount(chip.tracks, nullptr);
    it = hosts_.erase(it);
    ++epoch_;
  }
}

}  // namespace tacho::server::conditions
