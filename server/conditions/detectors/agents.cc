// ClockSkewed: the clock of a host is wrong, and so are the times of its rows.
//
// Definition. Let o_i be the lead of host i's clock over the collector's, as the collector measures
// it about once a second in exchanges with the agent, and u_i the bound on its error. The condition
// is true if |o_i| - u_i > max_offset, that is for sure. An agent of an older version says its time
// on connecting only: then o_i is of that moment, includes the way of the message, and u_i is 0. A
// clock that is set while its agent is connected shows with the agent's next message. If at least
// half of 3 hosts or more share an offset, within max_offset, the collector's clock is the one that
// differs (reason CollectorClock, no culprits). Otherwise the reason is HostClock, and the culprits
// are the hosts, the furthest first; score: |o_i| in seconds.
//
// Needs agents. Rows keep the times that they came with; the detectors correct for a known offset.
//
// Source: the exchange is NTP's (RFC 5905, section 8). The bound is ours: a smaller offset changes
// nothing that is shown in seconds.
//
//
// DataLoss: rows of the job's hosts were lost on their way.
//
// Definition. Within `recent`, the agent of a host of the job reported rows that it could not keep
// (an overwritten ring, a full spool, a damaged file), or a gap in what it sends. The figures cover
// the whole window.
//
// Culprits: the hosts, by rows lost; score: rows. Needs agents. Limits: nobody knows what was in
// the rows, and a loss that nobody noticed, such as rows that were never recorded, does not show.
//
// Source: ours (Gap messages of tacho.v1.Ingest).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"

namespace tacho::server::conditions {
namespace {

struct Offset {
  const HostWindow* host = nullptr;
  double seconds = 0;
  double uncertainty = 0;

  bool Exceeds(double bound) const { return std::abs(seconds) - uncertainty > bound; }
};

// The offset that at least half of the hosts share; nullopt if there is none, or it is small.
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

Finding DetectClockSkewed(const JobWindow& window, const Progress::ClockSkewed& settings) {
  if (window.ended) return NotPresent();
  std::vector<Offset> offsets;
  for (const HostWindow& host : window.hosts) {
    if (!host.agent.has_value() || !host.agent->clock_offset_seconds.has_value()) continue;
    const double seconds = *host.agent->clock_offset_seconds;
    const double uncertainty = host.agent->clock_uncertainty_seconds.value_or(0);
    if (!std::isfinite(seconds)) continue;
    offsets.push_back({.host = &host, .seconds = seconds, .uncertainty = uncertainty});
  }
  if (offsets.empty()) return NotJudged();
  std::stable_sort(offsets.begin(), offsets.end(), [](const Offset& a, const Offset& b) {
    return std::abs(a.seconds) - a.uncertainty > std::abs(b.seconds) - b.uncertainty;
  });
  const double bound = Seconds(settings.max_offset());
  const double worst = offsets.front().seconds;
  if (!offsets.front().Exceeds(bound)) return NotPresent();

  const auto off = static_cast<size_t>(std::count_if(
      offsets.begin(), offsets.end(), [&](const Offset& offset) { return offset.Exceeds(bound); }));
  const std::optional<double> common = Common(offsets, bound);
  Finding finding =
      common.has_value()
          ? Present(Severity::kWarning, "CollectorClock",
                    absl::StrFormat("The clocks of %d of %d hosts are %.3g s %s the collector's; "
                                    "the collector's clock is probably wrong",
                                    off, offsets.size(), std::abs(*common), Direction(*common)))
          : Present(Severity::kWarning, "HostClock",
                    absl::StrFormat("The clock of %s is %.3g s %s the collector's; the clocks of "
                                    "%d of %d hosts are off",
                                    offsets.front().host->host, std::abs(worst), Direction(worst),
                                    off, offsets.size()));
  finding.figures = {{"offset", worst, "s"},
                     {"uncertainty", offsets.front().uncertainty, "s"},
                     {"threshold", bound, "s"},
                     {"hosts_off", static_cast<double>(off), "1"},
                     {"hosts", static_cast<double>(offsets.size()), "1"}};
  if (common.has_value()) return finding;
  for (size_t i = 0; i < off; ++i) {
    finding.BlameHost(offsets[i].host->host, std::abs(offsets[i].seconds));
  }
  return finding;
}

Finding DetectDataLoss(const JobWindow& window, const Progress::DataLoss& settings) {
  std::vector<const HostWindow*> losing;
  size_t known = 0;
  for (const HostWindow& host : window.hosts) {
    if (!host.agent.has_value()) continue;
    ++known;
    if (host.agent->lost_rows == 0) continue;
    const int64_t age_ns = window.now_ns - host.agent->last_loss_ns;
    if (age_ns <= settings.recent()) losing.push_back(&host);
  }
  if (known == 0) return NotJudged();
  if (losing.empty()) return NotPresent();
  std::stable_sort(losing.begin(), losing.end(), [](const HostWindow* a, const HostWindow* b) {
    return a->agent->lost_rows > b->agent->lost_rows;
  });

  uint64_t rows = 0;
  for (const HostWindow* host : losing) rows += host->agent->lost_rows;
  const HostWindow& first = *losing.front();
  Finding finding =
      Present(Severity::kWarning, "RowsLost",
              absl::StrFormat("%d rows of %d hosts were lost; %s lost %d, the last one %.0f s ago",
                              rows, losing.size(), first.host, first.agent->lost_rows,
                              Seconds(window.now_ns - first.agent->last_loss_ns)));
  finding.figures = {{"lost_rows", static_cast<double>(rows), "{row}"},
                     {"hosts", static_cast<double>(losing.size()), "1"}};
  for (const HostWindow* host : losing) {
    finding.BlameHost(host->host, static_cast<double>(host->agent->lost_rows));
  }
  return finding;
}

}  // namespace tacho::server::conditions
