#include "server/conditions/detectors/memory_leak.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/conditions/measures/memory_use.h"
#include "server/conditions/measures/robust_trend.h"

namespace tacho::server::conditions {
namespace {

constexpr size_t kParts = 24;
// Of a span's points on average, so that the lowest of them is the floor.
constexpr size_t kPointsOfPart = 2;
constexpr size_t kMinParts = 10;
constexpr double kMinZ = 4;
constexpr double kStillShare = 0.5;
constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Leak {
  const MemoryUse* use = nullptr;
  int64_t since_ns = 0;
  double used = 0;  // The floor now.
  double slope = 0;
  double left = 0;  // Seconds; with its uncertainty.
  double left_low = 0;
  double left_high = 0;
};

struct Floor {
  std::vector<double> seconds;  // Since the first point.
  std::vector<double> used;
};

Floor FloorOf(const std::vector<MemoryPoint>& points, size_t first) {
  const size_t count = points.size() - first;
  const size_t parts = std::min(kParts, count / kPointsOfPart);
  Floor floor;
  if (parts == 0) return floor;
  const int64_t begin = points[first].time_ns;
  const double span = static_cast<double>(points.back().time_ns - begin);
  size_t part = parts;  // Of the point before.
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

// The newest third of a floor rises about as fast as all of it.
bool StillRises(const Floor& floor, double slope) {
  const size_t first = floor.used.size() - floor.used.size() / 3;
  const RobustTrend newest = FitTrend(absl::MakeSpan(floor.seconds).subspan(first),
                                      absl::MakeSpan(floor.used).subspan(first));
  // Of fewer than four parts nothing can be said; there are never so few.
  return !newest.valid || newest.slope >= kStillShare * slope;
}

std::optional<Leak> LeakOver(const MemoryUse& use, size_t first,
                             const MemoryLeakSettings& settings) {
  const Floor floor = FloorOf(use.points, first);
  if (floor.used.size() < kMinParts) return std::nullopt;
  const RobustTrend trend = FitTrend(floor.seconds, floor.used);
  if (!trend.valid || trend.tau < settings.min_tau || trend.z < kMinZ || trend.slope_low <= 0) {
    return std::nullopt;
  }
  const double span = floor.seconds.back() - floor.seconds.front();
  if (trend.slope * span < settings.min_growth * use.total) return std::nullopt;
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
  if (leak.left > absl::ToDoubleSeconds(settings.horizon)) return std::nullopt;
  return leak;
}

// Over the longest of the spans in which it leaks.
std::optional<Leak> LeakOf(const MemoryUse& use, const MemoryLeakSettings& settings, bool* judged) {
  const int64_t newest = use.points.back().time_ns;
  const int64_t all = newest - use.points.front().time_ns;
  for (const int64_t part : {1, 2, 4}) {
    const int64_t span = all / part;
    if (span < absl::ToInt64Nanoseconds(settings.min_span)) break;
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
      "memory of %s grows by %.3g GiB an hour: %.1f of %.1f GiB are used, which leaves about %s "
      "(%s to %s)",
      leak.use->Name(), leak.slope * 3600 / kGiB, leak.used / kGiB, leak.use->total / kGiB,
      TextOf(leak.left), TextOf(leak.left_low), TextOf(leak.left_high));
  if (leaks > 1) absl::StrAppendFormat(&text, "; and %d more", leaks - 1);
  return text;
}

}  // namespace

Finding DetectMemoryLeak(const JobWindow& window, const MemoryLeakSettings& settings) {
  const int64_t since = window.attempt_started_ns + absl::ToInt64Nanoseconds(settings.warmup);
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
  Finding finding = NotPresent();
  finding.present = true;
  finding.severity = worst.left < absl::ToDoubleSeconds(settings.critical_left)
                         ? Severity::kCritical
                         : Severity::kWarning;
  finding.reason = worst.use->chip.empty() ? "HostMemory" : "DeviceMemory";
  finding.message = MessageOf(worst, leaks.size());
  finding.since_ns = worst.since_ns;
  finding.figures = {
      {"growth", worst.slope, "By/s"},        {"used", worst.used, "By"},
      {"total", worst.use->total, "By"},      {"time_left", worst.left, "s"},
      {"time_left_low", worst.left_low, "s"}, {"time_left_high", worst.left_high, "s"}};
  for (const Leak& leak : leaks) {
    if (finding.culprits.size() == kMaxCulprits) break;
    finding.culprits.push_back({.host = leak.use->host,
                                .chip = leak.use->chip,
                                .metric = leak.use->metric,
                                .score = leak.left});
  }
  return finding;
}

}  // namespace tacho::server::conditions
