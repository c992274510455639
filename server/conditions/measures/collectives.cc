#include "server/conditions/measures/collectives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/conditions/window/signal_names.h"

namespace tacho::server::conditions {
namespace {

constexpr absl::string_view kPeer = "_peer_";

struct CollectiveName {
  std::string name;
  std::optional<uint32_t> peer;
};

// Reads the recorder's names, such as "collective_pp_send_peer_3_seconds", and those of labelled
// series, such as "collective_seconds{collective=pp-send,peer=3}". Any other configured metric is a
// collective without a peer.
CollectiveName ParseName(absl::string_view metric) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(metric, absl::MaxSplits('{', 1));
  const std::string normalised = NormalisedName(parts.first);
  absl::string_view name = normalised;
  if (!absl::ConsumeSuffix(&name, "_seconds")) absl::ConsumeSuffix(&name, "_bytes");
  absl::ConsumePrefix(&name, "collective_");
  CollectiveName parsed = {.name = std::string(name), .peer = std::nullopt};
  uint32_t peer = 0;
  if (const size_t at = name.rfind(kPeer);
      at != absl::string_view::npos && absl::SimpleAtoi(name.substr(at + kPeer.size()), &peer)) {
    parsed = {.name = std::string(name.substr(0, at)), .peer = peer};
  }
  for (const absl::string_view label : absl::StrSplit(absl::StripSuffix(parts.second, "}"), ',')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(label, absl::MaxSplits('=', 1));
    if (pair.first == "collective") parsed.name = NormalisedName(pair.second);
    if (pair.first == "peer" && absl::SimpleAtoi(pair.second, &peer)) parsed.peer = peer;
  }
  return parsed;
}

// What one task recorded of one collective, or of all exchanges with one peer.
struct Member {
  const TaskWindow* task = nullptr;
  std::vector<const Track*> seconds;
  std::vector<const Track*> bytes;
};

// The sum of the tracks' values at a step; NaN if none has one.
double ValueAt(const std::vector<const Track*>& tracks, int64_t step, int64_t* time_ns) {
  double sum = std::numeric_limits<double>::quiet_NaN();
  for (const Track* track : tracks) {
    // Points ascend by time, and but for late rows by step.
    const auto at =
        std::lower_bound(track->points.begin(), track->points.end(), step,
                         [](const Point& p, int64_t wanted) { return p.step < wanted; });
    if (at == track->points.end() || at->step != step || !std::isfinite(at->value)) continue;
    sum = std::isfinite(sum) ? sum + at->value : at->value;
    if (time_ns != nullptr) *time_ns = at->time_ns;
  }
  return sum;
}

// nullopt if fewer than `least` members have recorded the step.
std::optional<CollectiveStep> Shortest(const std::vector<Member>& members, int64_t step,
                                       size_t least) {
  CollectiveStep shortest = {.step = step, .time_ns = INT64_MAX, .seconds = INFINITY};
  size_t count = 0;
  for (const Member& member : members) {
    int64_t time_ns = 0;
    const double seconds = ValueAt(member.seconds, step, &time_ns);
    if (!(seconds >= 0)) continue;
    ++count;
    shortest.seconds = std::min(shortest.seconds, seconds);
    shortest.time_ns = std::min(shortest.time_ns, time_ns);
    const double bytes = ValueAt(member.bytes, step, nullptr);
    if (std::isfinite(bytes) && !(bytes <= shortest.bytes)) shortest.bytes = bytes;
  }
  return count >= least ? std::optional(shortest) : std::nullopt;
}

// The steps of points [begin, end), or an even choice of kOlderSteps of them.
std::vector<int64_t> ChooseSteps(const std::vector<Point>& points, size_t begin, size_t end) {
  std::vector<int64_t> steps;
  const size_t count = end - begin;
  const size_t wanted = std::min(count, kOlderSteps);
  for (size_t i = 0; i < wanted; ++i) {
    const int64_t step = points[begin + i * count / wanted].step;
    if (step != kNoPointStep) steps.push_back(step);
  }
  return steps;
}

void Measure(const std::vector<Member>& members, size_t newest_steps, CollectiveTimes* times) {
  // The steps are those of a usual member: the lowest task keeps more points than others, and a
  // task that began anew has fewer.
  std::vector<const Track*> tracks;
  for (const Member& member : members) tracks.push_back(member.seconds.front());
  const auto middle = tracks.begin() + static_cast<ptrdiff_t>(tracks.size() / 2);
  std::nth_element(tracks.begin(), middle, tracks.end(), [](const Track* a, const Track* b) {
    return a->points.size() < b->points.size();
  });
  const std::vector<Point>& points = (*middle)->points;
  const size_t new_begin = points.size() - std::min(points.size(), newest_steps);
  const size_t half = std::min(points.size() / 2, new_begin);
  const size_t most = members.size() / 2 + 1;
  const auto fill = [&](const std::vector<int64_t>& steps, size_t least,
                        std::vector<CollectiveStep>* out) {
    for (const int64_t step : steps) {
      const auto shortest = Shortest(members, step, std::max<size_t>(2, least));
      if (shortest.has_value()) out->push_back(*shortest);
    }
  };
  fill(ChooseSteps(points, 0, half), members.size() / 3, &times->before);
  fill(ChooseSteps(points, half, new_begin), members.size() / 3, &times->between);
  std::vector<int64_t> newest;
  for (size_t i = new_begin; i < points.size(); ++i) {
    if (points[i].step != kNoPointStep) newest.push_back(points[i].step);
  }
  fill(newest, most, &times->newest);
  for (const Member& member : members) times->members.push_back(member.task);
  times->metric = members.front().seconds.front()->metric;
}

using ByTask = std::map<uint32_t, Member>;

// The members of each collective, and by (task, peer) what a task recorded of each peer.
struct RecordedCollectives {
  std::map<std::string, ByTask> collectives;
  std::map<std::pair<uint32_t, uint32_t>, Member> ends;
};

RecordedCollectives ReadWindow(const JobWindow& window) {
  RecordedCollectives recorded;
  for (const TaskWindow& task : window.tasks) {
    if (!task.task.has_value()) continue;
    for (const Signal signal : {Signal::kCollective, Signal::kCollectiveBytes}) {
      const auto found = task.tracks.find(signal);
      if (found == task.tracks.end()) continue;
      for (const Track& track : found->second) {
        if (track.empty()) continue;
        const CollectiveName name = ParseName(track.metric);
        Member& member = name.peer.has_value() ? recorded.ends[{*task.task, *name.peer}]
                                               : recorded.collectives[name.name][*task.task];
        member.task = &task;
        (signal == Signal::kCollective ? member.seconds : member.bytes).push_back(&track);
      }
    }
  }
  return recorded;
}

}  // namespace

std::vector<CollectiveTimes> MeasureCollectives(const JobWindow& window, size_t newest_steps) {
  const RecordedCollectives recorded = ReadWindow(window);
  std::vector<CollectiveTimes> all;
  for (const auto& [name, tasks] : recorded.collectives) {
    std::vector<Member> members;
    for (const auto& [task, member] : tasks) {
      if (!member.seconds.empty()) members.push_back(member);
    }
    if (members.size() < 2) continue;
    CollectiveTimes& times = all.emplace_back();
    times.name = name;
    Measure(members, newest_steps, &times);
  }
  for (const auto& [ends, member] : recorded.ends) {
    const auto [task, peer] = ends;
    const auto other = recorded.ends.find({peer, task});
    if (task >= peer || other == recorded.ends.end()) continue;
    if (member.seconds.empty() || other->second.seconds.empty()) continue;
    CollectiveTimes& times = all.emplace_back();
    times.name = ParseName(member.seconds.front()->metric).name;
    times.is_link = true;
    Measure({member, other->second}, newest_steps, &times);
  }
  return all;
}

}  // namespace tacho::server::conditions
