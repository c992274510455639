#include "server/conditions/detectors/agent_silent.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tacho::server::conditions {
namespace {

struct Silent {
  const HostWindow* host = nullptr;
  std::optional<uint32_t> task;
  double seconds = 0;
};

}  // namespace

Finding DetectAgentSilent(const JobWindow& window, const AgentSilentSettings& settings) {
  if (window.ended) return NotPresent();
  std::map<std::string, std::optional<uint32_t>> running;  // Hosts, and the first task of each.
  for (const TaskWindow& task : window.tasks) {
    if (!task.ended) running.emplace(task.host, task.task);
  }
  std::vector<Silent> silent;
  size_t known = 0;
  for (const HostWindow& host : window.hosts) {
    const auto found = running.find(host.host);
    if (!host.agent.has_value() || found == running.end()) continue;
    ++known;
    const int64_t age_ns = window.now_ns - host.agent->last_heard_ns;
    const absl::Duration limit =
        host.agent->connected ? settings.silent_after : settings.disconnected_after;
    if (age_ns <= absl::ToInt64Nanoseconds(limit)) continue;
    silent.push_back(
        {.host = &host, .task = found->second, .seconds = static_cast<double>(age_ns) / 1e9});
  }
  if (known == 0) return window.tasks.empty() || !running.empty() ? NotJudged() : NotPresent();
  if (silent.empty()) return NotPresent();
  std::stable_sort(silent.begin(), silent.end(),
                   [](const Silent& a, const Silent& b) { return a.seconds > b.seconds; });

  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  const Silent& first = silent.front();
  const bool all = silent.size() == known && known > 2;
  finding.reason = first.host->agent->connected ? "NotHeard" : "Disconnected";
  if (all) finding.reason = "AllAgents";
  finding.since_ns = first.host->agent->last_heard_ns;
  finding.figures = {{"silent_agents", static_cast<double>(silent.size()), "1"},
                     {"agents", static_cast<double>(known), "1"},
                     {"silent_seconds", first.seconds, "s"}};
  for (const Silent& one : silent) {
    if (finding.culprits.size() == kMaxCulprits) break;
    finding.culprits.push_back({.task = one.task,
                                .host = one.host->host,
                                .chip = "",
                                .metric = "",
                                .step = std::nullopt,
                                .score = one.seconds});
  }
  finding.message =
      absl::StrFormat("Nothing was heard of the agent on %s for %.0f s; it is %s", first.host->host,
                      first.seconds, first.host->agent->connected ? "connected" : "not connected");
  if (all) {
    finding.message = absl::StrFormat("Nothing was heard of any of %d agents for up to %.0f s",
                                      known, first.seconds);
  } else if (silent.size() > 1) {
    absl::StrAppend(&finding.message, "; so are ", silent.size() - 1, " more");
  }
  return finding;
}

}  // namespace tacho::server::conditions
