#include "tests/conditions/synthetic_follower.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/conditions/window/track_points.h"
#include "server/conditions/window/window_builder.h"
#include "tests/support/synthetic_noise.h"

namespace tacho::testing {
namespace {

using server::conditions::JobWindow;
using server::conditions::TaskWindow;
using server::conditions::Track;
using server::conditions::Tracks;
using server::conditions::WindowBuilder;
using server::conditions::WindowEvent;
using server::conditions::WindowLimits;

constexpr size_t kFirstTaskShare = 8;

server::phases::PhaseCover CoverOf(const std::vector<WindowEvent>& events) {
  server::phases::PhasePairs pairs;
  for (const WindowEvent& event : events) pairs.Add(event.kind, event.time_ns, event.task);
  return server::phases::PhaseCover(pairs.Take());
}

void Thin(size_t most, Tracks* tracks) {
  for (auto& [signal, all] : *tracks) {
    for (Track& track : all) {
      if (track.points.size() > most) server::conditions::ThinPoints(most, &track.points);
    }
  }
}

void Drop(int64_t before_ns, Tracks* tracks) {
  for (auto& [signal, all] : *tracks) {
    for (Track& track : all) server::conditions::DropPointsBefore(before_ns, &track.points);
  }
}

}  // namespace

SyntheticFollower::SyntheticFollower(const SyntheticFleet& fleet, size_t points)
    : fleet_(fleet),
      points_(std::max(points, WindowBuilder::kMinPoints)),
      events_(fleet.EventsUntil(std::numeric_limits<double>::infinity())),
      phases_(CoverOf(events_)) {
  const FleetOptions& options = fleet.options();
  window_.job = options.job;
  window_.attempt = options.attempt;
  window_.attempt_started_ns = SyntheticFleet::Time(0);
  window_.attributes = options.attributes;
  window_.attributes.emplace("tasks", absl::StrCat(options.tasks));
  window_.attributes.emplace("config_fingerprint", "synthetic");
  window_.baselines = options.baselines;
  window_.straggles_elsewhere = options.straggles_elsewhere;
  next_step_.resize(options.tasks);
  for (uint32_t task = 0; task < options.tasks; ++task) {
    TaskWindow& added = window_.tasks.emplace_back();
    added.task = task;
    added.host = SyntheticHost(fleet.HostOf(task));
    added.first_time_ns = added.last_time_ns = SyntheticFleet::Time(0);
  }
  for (uint32_t host = 0; host * options.tasks_per_host < options.tasks; ++host) {
    window_.hosts.emplace_back().host = SyntheticHost(host);
    for (uint32_t chip = 0; chip < options.chips_per_host; ++chip) {
      window_.chips.push_back(
          {.host = SyntheticHost(host), .chip = absl::StrCat(chip), .tracks = {}});
    }
  }
  idle_since_.resize(window_.chips.size());
}

bool SyntheticFollower::Lost(uint32_t task, size_t index) const {
  const SyntheticFleet::Steps& steps = fleet_.StepsOf(task);
  if (index + 1 >= steps.size()) return false;
  return std::any_of(fleet_.faults_.begin(), fleet_.faults_.end(), [&](const Fault& fault) {
    return fault.kind == FaultKind::kHang && fault.amount > 0 && fleet_.Hits(fault, task) &&
           fault.at_seconds >= steps[index + 1].start && fault.at_seconds < steps[index + 1].end;
  });
}

void SyntheticFollower::AddRows(uint32_t task, double now) {
  const FleetOptions& options = fleet_.options();
  const SyntheticFleet::Steps& steps = fleet_.StepsOf(task);
  const double silent_from = fleet_.SilentFrom(task);
  TaskWindow& out = window_.tasks[task];
  const size_t most =
      task == 0 ? std::max(points_, std::min(kFirstTaskShare * points_, WindowLimits{}.points))
                : points_;
  for (size_t& i = next_step_[task]; i < steps.size() && steps[i].done; ++i) {
    const double delay =
        options.row_delay * SyntheticUniform(options.seed, NoiseStream::kDelay, task, i);
    const double time = steps[i].end + delay;
    if (time > now) break;
    if ((options.first_step + i) % options.log_every != 0) continue;
    if (time >= silent_from || Lost(task, i)) continue;
    const double skew = fleet_.Amount(FaultKind::kClockSkew, task, time);
    const int64_t time_ns = SyntheticFleet::Time(time + skew);
    out.last_time_ns = out.last_step_time_ns = time_ns;
    out.last_step = options.first_step + static_cast<int64_t>(i);
    if (out.first_step_time_ns == 0) out.first_step_time_ns = time_ns;
    out.pace.Of(1).Note(time_ns, *out.last_step);
    out.pace.Settle(time_ns, [&](int64_t from, int64_t to) { return phases_.CoveredNs(from, to); });
    fleet_.FillStep(task, i, time_ns, &out.tracks);
    fleet_.FillCurves(task, i, time_ns, &out.tracks);
    Thin(most, &out.tracks);
  }
  out.ended = options.steps.has_value() && steps.size() == *options.steps && steps.back().done &&
              steps.back().end + 1 < now;
}

void SyntheticFollower::AddSamples(uint32_t host, double now) {
  const FleetOptions& options = fleet_.options();
  auto& out = window_.hosts[host];
  out.agent = fleet_.AgentOf(host, now);
  const size_t first_chip = static_cast<size_t>(host) * options.chips_per_host;
  for (size_t i = next_sample_; static_cast<double>(i) * options.sample_seconds <= now; ++i) {
    const double t = static_cast<double>(i) * options.sample_seconds;
    if (fleet_.SilentSince(host, t).has_value()) continue;
    fleet_.SampleHost(host, t, &out.tracks);
    for (uint32_t chip = 0; chip < options.chips_per_host; ++chip) {
      fleet_.SampleChip(host, chip, t, &idle_since_[first_chip + chip],
                        &window_.chips[first_chip + chip].tracks);
    }
  }
  const int64_t oldest_ns =
      SyntheticFleet::Time(now) - absl::ToInt64Nanoseconds(WindowLimits{}.host_window);
  const auto keep = [&](Tracks* tracks) {
    if (now > absl::ToDoubleSeconds(WindowLimits{}.host_window)) Drop(oldest_ns, tracks);
    Thin(points_, tracks);
  };
  keep(&out.tracks);
  for (uint32_t chip = 0; chip < options.chips_per_host; ++chip) {
    keep(&window_.chips[first_chip + chip].tracks);
  }
}

void SyntheticFollower::AddEvents() {
  std::vector<WindowEvent>& events = window_.events;
  for (; next_event_ < events_.size() && events_[next_event_].time_ns <= window_.now_ns;
       ++next_event_) {
    events.push_back(events_[next_event_]);
  }
  if (events.size() > WindowBuilder::kMaxEvents) {
    events.erase(events.begin(),
                 events.end() - static_cast<std::ptrdiff_t>(WindowBuilder::kMaxEvents));
  }
}

JobWindow& SyntheticFollower::At(double seconds) {
  const FleetOptions& options = fleet_.options();
  window_.now_ns = SyntheticFleet::Time(seconds);
  AddEvents();
  for (uint32_t task = 0; task < options.tasks; ++task) AddRows(task, seconds);
  for (uint32_t host = 0; host < window_.hosts.size(); ++host) AddSamples(host, seconds);
  while (static_cast<double>(next_sample_) * options.sample_seconds <= seconds) ++next_sample_;
  window_.ended = std::all_of(window_.tasks.begin(), window_.tasks.end(),
                              [](const TaskWindow& task) { return task.ended; });
  return window_;
}

}  // namespace tacho::testing
