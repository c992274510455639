#include "server/conditions/detectors/data_loss.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"

namespace tacho::server::conditions {

Finding DetectDataLoss(const JobWindow& window, const DataLossSettings& settings) {
  std::vector<const HostWindow*> losing;
  size_t known = 0;
  for (const HostWindow& host : window.hosts) {
    if (!host.agent.has_value()) continue;
    ++known;
    if (host.agent->lost_rows == 0) continue;
    const int64_t age_ns = window.now_ns - host.agent->last_loss_ns;
    if (age_ns <= absl::ToInt64Nanoseconds(settings.recent)) losing.push_back(&host);
  }
  if (known == 0) return NotJudged();
  if (losing.empty()) return NotPresent();
  std::stable_sort(losing.begin(), losing.end(), [](const HostWindow* a, const HostWindow* b) {
    return a->agent->lost_rows > b->agent->lost_rows;
  });

  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  finding.reason = "RowsLost";
  uint64_t rows = 0;
  for (const HostWindow* host : losing) {
    rows += host->agent->lost_rows;
    if (finding.culprits.size() == kMaxCulprits) continue;
    finding.culprits.push_back({.task = std::nullopt,
                                .host = host->host,
                                .chip = "",
                                .metric = "",
                                .step = std::nullopt,
                                .score = static_cast<double>(host->agent->lost_rows)});
  }
  const HostWindow& first = *losing.front();
  finding.figures = {{"lost_rows", static_cast<double>(rows), "{row}"},
                     {"hosts", static_cast<double>(losing.size()), "1"}};
  finding.message =
      absl::StrFormat("%d rows of %d hosts were lost; %s lost %d, the last %.0f s ago", rows,
                      losing.size(), first.host, first.agent->lost_rows,
                      static_cast<double>(window.now_ns - first.agent->last_loss_ns) / 1e9);
  return finding;
}

}  // namespace tacho::server::conditions
