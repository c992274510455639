// MemoryLeak: the memory of a host or chip grows so fast that it will run out.
//
// Definition. The used memory over a span of time (everything in the window since the attempt began
// and warmed up, or its newest half, or its newest quarter) is reduced to its floor: the lowest
// value in each of up to 24 equal parts of the span. Peaks above the floor, such as checkpoints,
// evaluations and caches that are emptied again, do not count. Memory leaks if in one of the spans
//   - the floor rises steadily: Kendall's tau >= min_tau, and z >= 4 (Mann 1945, Kendall 1948);
//   - it still rises: the slope of the newest third is at least half that of the span, so memory
//     that fills up and then stays, as in warming up, does not count;
//   - if its newer half rises more slowly than its older half, beyond their 95 % intervals, growth
//     goes on slowing down by that factor in each such time, and its sum exceeds the rest;
//   - it rose by at least min_growth of the total;
//   - at that slope (Theil 1950, Sen 1968) the rest is used up within the horizon.
// Or if there are teeth, as of caches that are emptied again: at least 5 troughs, each a quarter of
// the range below the peaks beside it, that rise with tau >= 0.9, on a line whose slope is at least
// 6 times its standard error, by min_growth; and their peaks reach the total within the horizon. So
// a leak shows after 5 teeth, not after 24 spans. Growth
// over a part of the window does not count where as much was used before it. Time left = (total -
// floor now) / slope, with the 95 % interval of the slope as its uncertainty. The combination is
// ours.
//
// Critical if less than critical_left is left, at least half of the memory that was free when the
// growth began is used up, and growth does not slow down: caches that fill look the same at first.
//
// Score: seconds left; lower is worse. Limits: growth that will end below the limit looks like a
// leak until it ends; the floor does not show while the span is shorter than one period of a cache
// that is emptied again.
//
//
// MemoryPressure: the memory of a host or chip is nearly used up.
//
// Definition. Over the newest `span` every value of a host has less than host_free of its memory
// available (the kernel's MemAvailable), or every value of a chip more than device_used of its
// memory used. At least two values. The levels are ours; below the host's level Linux begins to
// reclaim memory in use, before its out-of-memory killer acts.
//
// Score: the free share; lower is worse. Critical if the free share is below half of its limit.
// Limits: frameworks that take all device memory in advance (XLA takes 75 % and more by default,
// some setups all of it) need a device_used above their share, or 1, which switches devices off.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/base/check.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

struct MemoryPoint {
  int64_t time_ns = 0;
  double used = 0;  // Bytes.
};

// The memory of one host, or of one chip.
struct MemoryUse {
  std::string host;
  std::string chip;                 // Empty: the host's own memory.
  std::string metric;               // The metric of the points.
  double total = 0;                 // Bytes, > 0; the newest.
  std::vector<MemoryPoint> points;  // Finite, ascending by time, not empty.

  std::string Name() const {
    return chip.empty() ? absl::StrCat("host ", host) : absl::StrCat("chip ", chip, " of ", host);
  }
};

// Appends nothing unless both signals are recorded.
void AddUse(MemoryUse use, const Tracks& tracks, Signal of_points, Signal of_total,
            int64_t since_ns, std::vector<MemoryUse>* uses) {
  const Track* track = FindTrack(tracks, of_points);
  const auto total = Newest(tracks, of_total);
  if (track == nullptr || !total.has_value() || !std::isfinite(*total) || *total <= 0) return;
  use.metric = track->metric;
  use.total = *total;
  const bool free = of_points == Signal::kHostMemoryAvailable;
  for (const Point& point : track->points) {
    if (point.time_ns < since_ns || !std::isfinite(point.value)) continue;
    use.points.push_back({point.time_ns, free ? *total - point.value : point.value});
  }
  if (!use.points.empty()) uses->push_back(std::move(use));
}

// Every host and chip of the window that records both signals, with points from `since_ns` on. The
// used memory of a host is its total less what is available (the kernel's MemAvailable, which
// counts caches that can be dropped as free).
std::vector<MemoryUse> MemoryUses(const JobWindow& window, int64_t since_ns) {
  std::vector<MemoryUse> uses;
  for (const HostWindow& host : window.hosts) {
    AddUse({.host = host.host}, host.tracks, Signal::kHostMemoryAvailable, Signal::kHostMemoryTotal,
           since_ns, &uses);
  }
  for (const ChipWindow& chip : window.chips) {
    AddUse({.host = chip.host, .chip = chip.chip}, chip.tracks, Signal::kHbmUsed, Signal::kHbmTotal,
           since_ns, &uses);
  }
  return uses;
}

constexpr size_t kParts = 24;
// A part needs this many points on average, so that the lowest of them is the floor.
constexpr size_t kPointsOfPart = 2;
constexpr size_t kMinParts = 10;
constexpr double kMinZ = 4;
constexpr size_t kMinTeeth = 5;
constexpr double kToothShare = 0.25;
constexpr double kMinToothTau = 0.9;
constexpr double kMinToothErrors = 6;
constexpr double kStillShare = 0.5;
constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr size_t kMinPressurePoints = 2;

struct Leak {
  const MemoryUse* use = nullptr;
  int64_t since_ns = 0;
  double used = 0;  // The floor now.
  double slope = 0;
  double left = 0;  // Seconds, with its uncertainty.
  double left_low = 0;
  double left_high = 0;
  bool slows = false;
  double begun = 0;  // The floor when it began.
};

struct Floor {
  std::vector<double> seconds;  // Since the first point.
  std::vector<double> used;
};

Floor FloorOf(const std::vector<MemoryPoint>& points, size_t first) {
  TACHO_CHECK(first < points.size());
  const size_t count = points.size() - first;
  const size_t parts = std::min(kParts, count / kPointsOfPart);
  Floor floor;
  if (parts == 0) return floor;
  const int64_t begin = points[first].time_ns;
  const double span = static_cast<double>(points.back().time_ns - begin);
  size_t part = parts;  // The part of the point before.
  for (size_t i = first; i < points.size(); ++i) {
    const double at = static_cast<double>(points[i].time_ns - begin);
    const size_t now =
        span <= 0
            ? 0
            : std::min(parts - 1, static_cast<size_t>(at / span * static_cast<double>(parts)));
    if (now != part) {
      floor.seconds.push_back(at / 1e9);
      floor.used.push_back(points[i].used);
      part = now;
    } else if (points[i].used < floor.used.back()) {
      floor.seconds.back() = at / 1e9;
      floor.used.back() = points[i].used;
    }
  }
  return floor;
}

// Whether the newest third of a floor rises about as fast as all of it.
bool StillRises(const Floor& floor, double slope) {
  const size_t first = floor.used.size() - floor.used.size() / 3;
  const RobustTrend newest = FitTrend(absl::MakeSpan(floor.seconds).subspan(first),
                                      absl::MakeSpan(floor.used).subspan(first));
  // Invalid means fewer than four parts, which kMinParts excludes.
  return !newest.valid || newest.slope >= kStillShare * slope;
}

// The slope of the newer half of a floor over that of its older half, if it is surely less; else 1.
double Slowing(const Floor& floor, double* newer_slope) {
  const size_t half = floor.used.size() / 2;
  const auto seconds = absl::MakeSpan(floor.seconds);
  const auto used = absl::MakeSpan(floor.used);
  const RobustTrend older = FitTrend(seconds.subspan(0, half), used.subspan(0, half));
  const RobustTrend newer = FitTrend(seconds.subspan(half), used.subspan(half));
  if (!older.valid || !newer.valid || newer.slope_high >= older.slope_low) return 1;
  *newer_slope = newer.slope;
  return std::clamp(newer.slope / older.slope, 0.0, 1.0);
}

std::optional<Leak> LeakOver(const MemoryUse& use, size_t first,
                             const Hardware::MemoryLeak& settings) {
  const Floor floor = FloorOf(use.points, first);
  if (floor.used.size() < kMinParts) return std::nullopt;
  const RobustTrend trend = FitTrend(floor.seconds, floor.used);
  if (!trend.valid || trend.tau < settings.min_tau() || trend.z < kMinZ || trend.slope_low <= 0) {
    return std::nullopt;
  }
  const double span = floor.seconds.back() - floor.seconds.front();
  if (trend.slope * span < settings.min_growth() * use.total) return std::nullopt;
  if (!StillRises(floor, trend.slope)) return std::nullopt;
  // The line overshoots where growth has just ended.
  const double used = std::min({use.total, trend.At(floor.seconds.back()), floor.used.back()});
  const double rest = use.total - used;
  Leak leak = {.use = &use,
               .since_ns = use.points[first].time_ns,
               .used = used,
               .slope = trend.slope,
               .left = rest / trend.slope,
               .left_low = rest / trend.slope_high,
               .left_high = rest / trend.slope_low};
  leak.begun = trend.At(floor.seconds.front());
  double newer_slope = 0;
  const double ratio = Slowing(floor, &newer_slope);
  if (ratio < 1) {
    // The sum of a geometric series whose first member is the growth of the newer half.
    const double to_come = newer_slope * span / 2 * ratio / (1 - ratio);
    if (to_come < rest) return std::nullopt;
    leak.slows = true;
  }
  if (leak.left > Seconds(settings.horizon())) return std::nullopt;
  return leak;
}

// The lowest points between peaks, and the height of the peaks above them.
struct Teeth {
  std::vector<double> seconds;  // Since the first point.
  std::vector<double> used;
  double height = 0;  // The highest peak above the trough before it.
};

Teeth TeethOf(const std::vector<MemoryPoint>& points) {
  const auto less = [](const MemoryPoint& a, const MemoryPoint& b) { return a.used < b.used; };
  const auto [low, high] = std::minmax_element(points.begin(), points.end(), less);
  const double least = kToothShare * (high->used - low->used);
  Teeth teeth;
  if (!(least > 0)) return teeth;
  const MemoryPoint* peak = &points.front();
  const MemoryPoint* trough = nullptr;  // Since the peak.
  for (const MemoryPoint& point : points) {
    if (trough == nullptr) {
      if (point.used > peak->used) peak = &point;
      if (point.used < peak->used - least) trough = &point;
    } else if (point.used < trough->used) {
      trough = &point;
    } else if (point.used > trough->used + least) {
      teeth.seconds.push_back(static_cast<double>(trough->time_ns - points.front().time_ns) / 1e9);
      teeth.used.push_back(trough->used);
      peak = &point;
      trough = nullptr;
    }
    if (trough == nullptr && !teeth.used.empty()) {
      teeth.height = std::max(teeth.height, peak->used - teeth.used.back());
    }
  }
  const size_t extra = teeth.used.size() - std::min(teeth.used.size(), kParts);
  teeth.seconds.erase(teeth.seconds.begin(), teeth.seconds.begin() + static_cast<ptrdiff_t>(extra));
  teeth.used.erase(teeth.used.begin(), teeth.used.begin() + static_cast<ptrdiff_t>(extra));
  return teeth;
}

std::optional<Leak> LeakOfTeeth(const MemoryUse& use, const Hardware::MemoryLeak& settings) {
  const Teeth teeth = TeethOf(use.points);
  if (teeth.used.size() < kMinTeeth) return std::nullopt;
  const double span = teeth.seconds.back() - teeth.seconds.front();
  if (span < Seconds(settings.min_span())) return std::nullopt;
  const RobustTrend trend = FitTrend(teeth.seconds, teeth.used);
  const Line line = FitLine(teeth.seconds, teeth.used);
  if (!trend.valid || trend.tau < kMinToothTau || !line.valid || line.slope <= 0 ||
      line.slope < kMinToothErrors * line.slope_error) {
    return std::nullopt;
  }
  if (line.slope * span < settings.min_growth() * use.total) return std::nullopt;
  const double rest = std::max(0.0, use.total - line.At(teeth.seconds.back()) - teeth.height);
  const double margin = 2 * line.slope_error;
  const Leak leak = {
      .use = &use,
      .since_ns = use.points.front().time_ns + static_cast<int64_t>(teeth.seconds.front() * 1e9),
      .used = use.total - rest,
      .slope = line.slope,
      .left = rest / line.slope,
      .left_low = rest / (line.slope + margin),
      .left_high = rest / (line.slope - margin),
      .begun = teeth.used.front() + teeth.height};
  if (leak.left > Seconds(settings.horizon())) return std::nullopt;
  return leak;
}

// The leak over the longest span that shows one.
std::optional<Leak> LeakOf(const MemoryUse& use, const Hardware::MemoryLeak& settings,
                           bool* judged) {
  TACHO_CHECK(!use.points.empty());
  const int64_t newest = use.points.back().time_ns;
  const int64_t all = newest - use.points.front().time_ns;
  for (const int64_t part : {1, 2, 4}) {
    const int64_t span = all / part;
    if (span < settings.min_span()) break;
    *judged = true;
    const auto first = std::lower_bound(
        use.points.begin(), use.points.end(), newest - span,
        [](const MemoryPoint& point, int64_t time_ns) { return point.time_ns < time_ns; });
    auto leak = LeakOver(use, static_cast<size_t>(first - use.points.begin()), settings);
    // Where as much was used before, and given back, this may be a tooth.
    const bool is_tooth =
        leak.has_value() && std::any_of(use.points.begin(), first, [&](const MemoryPoint& point) {
          return point.used >= leak->used;
        });
    if (leak.has_value() && !is_tooth) return leak;
  }
  if (*judged) return LeakOfTeeth(use, settings);
  return std::nullopt;
}

bool IsCritical(const Leak& leak, const Hardware::MemoryLeak& settings) {
  return leak.left < Seconds(settings.critical_left()) && !leak.slows &&
         leak.used - leak.begun >= (leak.use->total - leak.begun) / 2;
}

std::string TextOf(double seconds) {
  return absl::FormatDuration(
      absl::Minutes(std::max<int64_t>(1, static_cast<int64_t>(seconds / 60))));
}

std::string MessageOf(const Leak& leak, size_t leaks) {
  std::string text = absl::StrFormat(
      "Memory of %s grows by %.3g GiB an hour. %.1f of %.1f GiB are used; the rest lasts about %s "
      "(%s to %s)",
      leak.use->Name(), leak.slope * 3600 / kGiB, leak.used / kGiB, leak.use->total / kGiB,
      TextOf(leak.left), TextOf(leak.left_low), TextOf(leak.left_high));
  if (leaks > 1) absl::StrAppendFormat(&text, "; %d more leak", leaks - 1);
  return text;
}

struct Pressure {
  const MemoryUse* use = nullptr;
  double free = 0;   // The largest free share within the span.
  double limit = 0;  // A smaller share is pressure.
};

const char* ReasonOf(const MemoryUse& use) {
  return use.chip.empty() ? "HostMemory" : "DeviceMemory";
}

}  // namespace

Finding DetectMemoryLeak(const JobWindow& window, const Hardware::MemoryLeak& settings) {
  const int64_t since = window.attempt_started_ns + settings.warmup();
  const std::vector<MemoryUse> uses = MemoryUses(window, since);
  std::vector<Leak> leaks;
  bool judged = false;
  for (const MemoryUse& use : uses) {
    auto leak = LeakOf(use, settings, &judged);
    if (leak.has_value()) leaks.push_back(*leak);
  }
  if (!judged) return NotJudged();
  if (leaks.empty()) return NotPresent();
  std::stable_sort(leaks.begin(), leaks.end(),
                   [](const Leak& a, const Leak& b) { return a.left < b.left; });
  const Leak& worst = leaks.front();
  const bool critical = IsCritical(worst, settings);
  Finding finding = Present(critical ? Severity::kCritical : Severity::kWarning,
                            ReasonOf(*worst.use), MessageOf(worst, leaks.size()));
  finding.since_ns = worst.since_ns;
  finding.figures = {
      {"growth", worst.slope, "By/s"},        {"used", worst.used, "By"},
      {"total", worst.use->total, "By"},      {"time_left", worst.left, "s"},
      {"time_left_low", worst.left_low, "s"}, {"time_left_high", worst.left_high, "s"}};
  for (const Leak& leak : leaks) {
    finding.BlameChip(leak.use->host, leak.use->chip, leak.left, leak.use->metric);
  }
  return finding;
}

Finding DetectMemoryPressure(const JobWindow& window, const Hardware::MemoryPressure& settings) {
  const int64_t since = window.now_ns - settings.span();
  const std::vector<MemoryUse> uses = MemoryUses(window, since);
  std::vector<Pressure> found;
  bool judged = false;
  for (const MemoryUse& use : uses) {
    if (use.points.size() < kMinPressurePoints) continue;
    judged = true;
    double free = 0;
    for (const MemoryPoint& point : use.points) free = std::max(free, 1 - point.used / use.total);
    const double limit = use.chip.empty() ? settings.host_free() : 1 - settings.device_used();
    if (free < limit) found.push_back({&use, free, limit});
  }
  if (!judged) return NotJudged();
  if (found.empty()) return NotPresent();
  std::stable_sort(found.begin(), found.end(),
                   [](const Pressure& a, const Pressure& b) { return a.free < b.free; });
  const Pressure& worst = found.front();
  std::string message = absl::StrFormat(
      "%s has %.1f %% of its %.1f GiB of memory left (limit %.1f %%)", worst.use->Name(),
      worst.free * 100, worst.use->total / kGiB, worst.limit * 100);
  if (found.size() > 1) absl::StrAppendFormat(&message, "; %d more are affected", found.size() - 1);
  const bool critical = worst.free < worst.limit / 2;
  Finding finding = Present(critical ? Severity::kCritical : Severity::kWarning,
                            ReasonOf(*worst.use), std::move(message));
  finding.figures = {{"free_ratio", worst.free, "1"},
                     {"threshold", worst.limit, "1"},
                     {"total", worst.use->total, "By"}};
  for (const Pressure& one : found) {
    finding.BlameChip(one.use->host, one.use->chip, one.free, one.use->metric);
  }
  return finding;
}

}  // namespace tacho::server::conditions
