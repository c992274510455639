// Whether a host's data is up to date: the silence of a task means something only if its agent
// reports.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

using ingest::kAgentHeardWithin;

// Refers to the window, which must outlive it.
class Hosts {
 public:
  explicit Hosts(const JobWindow& window);

  // The host has an agent that is connected and reports.
  bool Heard(const std::string& host) const;
  // The host has an agent that is silent. A host without a known agent is neither.
  bool Unheard(const std::string& host) const;
  // Its agent is silent, and sent its last message within a minute or `slack_seconds` of then: a
  // host that lost its power falls silent with its trainers.
  bool FellSilentAt(const std::string& host, int64_t time_ns, double slack_seconds) const;
  // Converts a time by a host's clock to the collector's clock.
  int64_t Corrected(const std::string& host, int64_t time_ns) const;

  const HostWindow* Find(const std::string& host) const;

 private:
  int64_t now_ns_;
  std::map<std::string, const HostWindow*> hosts_;
};

}  // namespace tacho::server::conditions
