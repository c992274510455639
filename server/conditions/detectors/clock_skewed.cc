#include "server/conditions/detectors/clock_skewed.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

struct Offset {
  const HostWindow* host = nullptr;
  double seconds = 0;
};

// The offset that at least half of the hosts have, if it is not about none.
std::optional<double> Common(const std::vector<Offset>& offsets, double max_offset) {
  if (offsets.size() < 3) return std::nullopt;
  std::vector<double> values;
  for (const Offset& offset : offsets) values.push_back(offset.seconds);
  const double median = Median(std::move(values));
  if (std::abs(median) <= max_offset) return std::nullopt;
  const auto same = std::count_if(offsets.begin(), offsets.end(), [&](const Offset& offset) {
    return std::abs(offset.seconds - median) <= max_offset;
  });
  if (static_cast<size_t>(same) * 2 < offsets.size()) return std::nullopt;
  return median;
}

const char* Direction(double seconds) { return seconds > 0 ? "ahead of" : "behind"; }

}  // namespace

Finding DetectClockSkewed(const JobWindow& window, const ClockSkewedSettings& settings) {
  if (window.ended) return NotPresent();
  std::vector<Offset> offsets;
  for (const HostWindow& host : window.hosts) {
    if (!host.agent.has_value() || !host.agent->clock_offset_seconds.has_value()) continue;
    const double seconds = *host.agent->clock_offset_seconds;
    if (std::isfinite(seconds)) offsets.push_back({.host = &host, .seconds = seconds});
  }
  if (offsets.empty()) return NotJudged();
  std::stable_sort(offsets.begin(), offsets.end(), [](const Offset& a, const Offset& b) {
    return std::abs(a.seconds) > std::abs(b.seconds);
  });
  const double bound = absl::ToDoubleSeconds(settings.max_offset);
  const double worst = offsets.front().seconds;
  if (!(std::abs(worst) > bound)) return NotPresent();

  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  const auto off =
      static_cast<size_t>(std::count_if(offsets.begin(), offsets.end(), [&](const Offset& offset) {
        return std::abs(offset.seconds) > bound;
      }));
  finding.figures = {{"offset", worst, "s"},
                     {"threshold", bound, "s"},
                     {"hosts_off", static_cast<double>(off), "1"},
                     {"hosts", static_cast<double>(offsets.size()), "1"}};
  if (const std::optional<double> common = Common(offsets, bound)) {
    finding.reason = "CollectorClock";
    finding.message = absl::StrFormat(
        "The clocks of %d of %d hosts are %.3g s %s the collector's, whose own is "
        "the likely one to be wrong",
        off, offsets.size(), std::abs(*common), Direction(*common));
    return finding;
  }
  finding.reason = "HostClock";
  for (size_t i = 0; i < std::min(off, kMaxCulprits); ++i) {
    finding.culprits.push_back({.task = std::nullopt,
                                .host = offsets[i].host->host,
                                .chip = "",
                                .metric = "",
                                .step = std::nullopt,
                                .score = std::abs(offsets[i].seconds)});
  }
  finding.message = absl::StrFormat(
      "The clock of %s is %.3g s %s the collector's; %d of %d hosts "
      "are off",
      offsets.front().host->host, std::abs(worst), Direction(worst), off, offsets.size());
  return finding;
}

}  // namespace tacho::server::conditions
