#include "server/conditions/detectors/memory_pressure.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/conditions/measures/memory_use.h"

namespace tacho::server::conditions {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr size_t kMinPoints = 2;

struct Pressure {
  const MemoryUse* use = nullptr;
  double free = 0;   // The largest share of the span.
  double limit = 0;  // Less is pressure.
};

}  // namespace

Finding DetectMemoryPressure(const JobWindow& window, const MemoryPressureSettings& settings) {
  const int64_t since = window.now_ns - absl::ToInt64Nanoseconds(settings.span);
  const std::vector<MemoryUse> uses = MemoryUses(window, since);
  std::vector<Pressure> found;
  bool judged = false;
  for (const MemoryUse& use : uses) {
    if (use.points.size() < kMinPoints) continue;
    judged = true;
    double free = 0;
    for (const MemoryPoint& point : use.points) free = std::max(free, 1 - point.used / use.total);
    const double limit = use.chip.empty() ? settings.host_free : 1 - settings.device_used;
    if (free < limit) found.push_back({&use, free, limit});
  }
  if (!judged) return NotJudged();
  if (found.empty()) return NotPresent();
  std::stable_sort(found.begin(), found.end(),
                   [](const Pressure& a, const Pressure& b) { return a.free < b.free; });
  const Pressure& worst = found.front();
  Finding finding = NotPresent();
  finding.present = true;
  finding.severity = worst.free < worst.limit / 2 ? Severity::kCritical : Severity::kWarning;
  finding.reason = worst.use->chip.empty() ? "HostMemory" : "DeviceMemory";
  finding.message = absl::StrFormat("%s has %.1f %% of its %.1f GiB of memory left (limit %.1f %%)",
                                    worst.use->Name(), worst.free * 100, worst.use->total / kGiB,
                                    worst.limit * 100);
  if (found.size() > 1) absl::StrAppendFormat(&finding.message, "; and %d more", found.size() - 1);
  finding.figures = {{"free_ratio", worst.free, "1"},
                     {"threshold", worst.limit, "1"},
                     {"total", worst.use->total, "By"}};
  for (const Pressure& one : found) {
    if (finding.culprits.size() == kMaxCulprits) break;
    finding.culprits.push_back({.host = one.use->host,
                                .chip = one.use->chip,
                                .metric = one.use->metric,
                                .score = one.free});
  }
  return finding;
}

}  // namespace tacho::server::conditions
