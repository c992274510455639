#include "server/conditions/measures/heard.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "proto/base/saturate.h"

namespace tacho::server::conditions {

Hosts::Hosts(const JobWindow& window) : now_ns_(window.now_ns) {
  for (const HostWindow& host : window.hosts) hosts_.emplace(host.host, &host);
}

const HostWindow* Hosts::Find(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? nullptr : found->second;
}

bool Hosts::Heard(const std::string& host) const {
  const HostWindow* found = Find(host);
  return found != nullptr && found->agent.has_value() && found->agent->connected &&
         now_ns_ - found->agent->last_heard_ns <= absl::ToInt64Nanoseconds(kAgentHeardWithin);
}

bool Hosts::Unheard(const std::string& host) const {
  const HostWindow* found = Find(host);
  return found != nullptr && found->agent.has_value() && !Heard(host);
}

bool Hosts::FellSilentAt(const std::string& host, int64_t time_ns, double slack_seconds) const {
  if (!Unheard(host)) return false;
  const int64_t apart_ns = std::abs(Find(host)->agent->last_heard_ns - time_ns);
  return Seconds(apart_ns) <= std::max(absl::ToDoubleSeconds(kAgentHeardWithin), slack_seconds);
}

int64_t Hosts::Corrected(const std::string& host, int64_t time_ns) const {
  const HostWindow* found = Find(host);
  if (found == nullptr || !found->agent.has_value()) return time_ns;
  const double offset = found->agent->clock_offset_seconds.value_or(0);
  return std::isfinite(offset) ? AddSeconds(time_ns, -offset) : time_ns;
}

}  // namespace tacho::server::conditions
