// MemoryLeak: the memory of a host or chip grows so fast that it will run out.
//
// Definition. The used memory over a span of time (everything in the window since the attempt began
// and warmed up, or its newest half, or its newest quarter) is reduced to its floor: the lowest
// value in each of up to 24 equal parts of the span. Peaks above the floor, such as checkpoints,
// evaluations and caches that are emptied again, do not count. Memory leaks if in one of the spans
//   - the floor rises steadily: Kendall's tau >= min_tau, and z >= 4 (Mann 1945, Kendall 1948);
//   - it still rises: the slope of the newest third is at least half that of the span, so memory
//     that fills up and then stays, as in warming up, does not count;
//   - it rose by at least min_growth of the total;
//   - at that slope (Theil 1950, Sen 1968) the rest is used up within the horizon.
// Time left = (total - floor now) / slope, with the 95 % interval of the slope as its uncertainty.
// The combination is ours.
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
  const double used = std::min(use.total, trend.At(floor.seconds.back()));
  const double rest = use.total - used;
  Leak leak = {.use = &use,
               .since_ns = use.points[first].time_ns,
               .used = used,
               .slope = trend.slope,
               .left = rest / trend.slope,
               .left_low = rest / trend.slope_high,
               .left_high = rest / trend.slope_low};
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
    if (leak.has_value()) return leak;
  }
  return std::nullopt;
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
  const bool critical = worst.left < Seconds(settings.critical_left());
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
