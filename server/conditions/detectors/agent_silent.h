// AgentSilent: nothing is heard of the agent of a host that tasks of the job run on.
//
// Definition. With age = now - when anything of the agent came last, by the collector's clock:
//   not connected and age > disconnected_after, or connected and age > silent_after
// for a host with a task that has not ended. Agents send figures of their hosts every few seconds,
// whatever trainers do.
//
// Reasons: Disconnected, NotHeard: of the first culprit; AllAgents: of all hosts, and there are
// more than two of them: then the network or the collector is to be looked at rather than hosts.
// Culprits: the hosts, the longest silent first; score: seconds of silence. Task: the first on it.
//
// Needs hosts with a known agent. Cannot tell a dead host from a dead agent or a cut network: the
// job's other tasks tell, as in synchronous training they stop (Stalled) if the trainer died. A
// trainer that sends by itself (client/direct) is the agent of its host if no other is there.
//
// Source: our own. A heartbeat of 5 s as in Google's ml-goodput-measurement; a stop of a heartbeat
// for 30 s and more counts in NVIDIA Resiliency Extension.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct AgentSilentSettings {
  absl::Duration disconnected_after = absl::Seconds(30);
  absl::Duration silent_after = absl::Minutes(1);
};

Finding DetectAgentSilent(const JobWindow& window, const AgentSilentSettings& settings);

}  // namespace tacho::server::conditions
