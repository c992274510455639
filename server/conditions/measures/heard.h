// Whether what is known of a host is up to date: silence of a task means something only if its
// agent is heard.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

// An agent that sends nothing for longer than this is not heard: it sends figures of its host every
// few seconds, whatever trainers do.
inline constexpr absl::Duration kAgentHeardWithin = absl::Minutes(1);

// Refers to the window.
class Hosts {
 public:
  explicit Hosts(const JobWindow& window);

  // Has an agent, connected, and heard of lately.
  bool Heard(const std::string& host) const;
  // Has an agent, but not heard. A host of which no agent is known is neither.
  bool Unheard(const std::string& host) const;
  // A time by a host's clock as the collector's clock had it.
  int64_t Corrected(const std::string& host, int64_t time_ns) const;

  const HostWindow* Find(const std::string& host) const;

 private:
  int64_t now_ns_;
  std::map<std::string, const HostWindow*> hosts_;
};

}  // namespace tacho::server::conditions
