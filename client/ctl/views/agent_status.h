// The state of a fleet's agents, from their own metrics (tacho_agent_…, docs/notation.md) and from
// the jobs that run on their hosts; and how it is shown.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/ctl/line/environment.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

struct SourceStatus {
  std::string name;
  bool failing = false;
  uint64_t polls = 0;
  uint64_t failures = 0;
  uint64_t lost_rows = 0;  // Overwritten before the source read them.
  // Set for a source that fails; empty where an old agent does not report it.
  std::string code = {};    // A status code, like "UNAVAILABLE".
  std::string reason = {};  // In words.
  std::optional<int64_t> since_unix_ns = {};
  std::optional<int64_t> retry_unix_ns = {};
};

struct AgentStatus {
  enum class State { kOk, kFailing, kSilent };

  std::string host;
  std::string id;  // Empty, as `version`, where an old agent does not report it.
  std::string version;
  State state = State::kOk;
  int64_t last_seen_unix_ns = 0;  // Its newest row, by its own clock; all below dates from then.
  std::map<std::string, std::vector<uint32_t>> tasks;  // Those that run on its host now, by job.
  // In the spool, and since the agent's start; nullopt where an old agent does not report it.
  std::optional<uint64_t> waiting_messages;
  std::optional<uint64_t> waiting_bytes;
  std::optional<uint64_t> rows;
  std::optional<uint64_t> lost_rows;  // By the spool and by all sources.
  std::optional<uint64_t> resident_bytes;
  // How far its host's clock is ahead of the collector's, with the bound on the error.
  std::optional<double> clock_offset_seconds;
  std::optional<double> clock_uncertainty_seconds;
  std::optional<bool> clock_synchronized;   // A time service keeps it, as the host's kernel says.
  std::map<std::string, uint64_t> refused;  // Samples that the collector refused, by reason.
  std::vector<SourceStatus> sources;        // By name.

  size_t failing() const;
  // The clock is certainly off by more than a second: times of the rows are wrong.
  bool clock_is_off() const;
};

// Metrics that AssessAgents() wants the newest samples of.
const std::vector<std::string>& AgentMetrics();

// By host, without tasks and reasons. An agent whose last row is older than `silent_after` is
// silent.
std::vector<AgentStatus> AssessAgents(const std::vector<v1::LatestSample>& latest, absl::Time now,
                                      absl::Duration silent_after);

// Adds the tasks of the job that run on the agents' hosts.
void AddTasks(const v1::GetJobResponse& job, std::vector<AgentStatus>* agents);

// When the first of the failing sources began to fail; nullopt if none fails.
std::optional<int64_t> FirstFailure(const std::vector<AgentStatus>& agents);

// Adds why sources fail, from events source_failed in ascending time.
void AddReasons(const std::vector<v1::RecordedEvent>& failures, std::vector<AgentStatus>* agents);

// Prints a line for each agent, and below it one for each source that fails.
void PrintAgents(const Environment& env, const std::vector<AgentStatus>& agents);

void WriteAgentsJson(std::ostream& out, const std::vector<AgentStatus>& agents);

// One line for each source; an agent without sources has one line.
void WriteAgentsCsv(std::ostream& out, const std::vector<AgentStatus>& agents);

}  // namespace tacho::ctl
