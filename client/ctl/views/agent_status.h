// How the agents of a fleet do, worked out from what they tell of themselves (tacho_agent_…,
// docs/notation.md) and from the jobs that run on their hosts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

struct SourceStatus {
  std::string name;
  bool failing = false;
  uint64_t polls = 0;
  uint64_t failures = 0;
  uint64_t lost_rows = 0;  // Gone before the source read them.
  // Of a source that fails; empty where the agent is too old to say.
  std::string code = {};    // Of a status, like "UNAVAILABLE".
  std::string reason = {};  // In words.
  std::optional<int64_t> since_unix_ns = {};
  std::optional<int64_t> retry_unix_ns = {};
};

struct AgentStatus {
  enum class State { kOk, kFailing, kSilent };

  std::string host;
  std::string id;  // Empty: the agent is too old to say; so with `version`.
  std::string version;
  State state = State::kOk;
  int64_t last_seen_unix_ns = 0;  // Its newest row, by its own clock. All below is of that moment.
  std::map<std::string, std::vector<uint32_t>> tasks;  // Those that run on its host now, by job.
  // In the spool, and since the agent's start; nullopt: it is too old to say.
  std::optional<uint64_t> waiting_messages;
  std::optional<uint64_t> waiting_bytes;
  std::optional<uint64_t> rows;
  std::optional<uint64_t> lost_rows;  // By the spool and by all sources.
  std::optional<uint64_t> resident_bytes;
  std::vector<SourceStatus> sources;  // By name.

  size_t failing() const;
};

// Metrics that AssessAgents() wants the newest samples of.
const std::vector<std::string>& AgentMetrics();

// By host, without tasks and reasons. An agent that was not heard of for longer than `silent_after`
// is silent, whatever it said last.
std::vector<AgentStatus> AssessAgents(const std::vector<v1::LatestSample>& latest, absl::Time now,
                                      absl::Duration silent_after);

// Adds the tasks of the job that run on the agents' hosts.
void AddTasks(const v1::GetJobResponse& job, std::vector<AgentStatus>* agents);

// When the first source began to fail of those that do; nullopt: none does.
std::optional<int64_t> FirstFailure(const std::vector<AgentStatus>& agents);

// What events source_failed, in ascending time, say of why sources fail.
void AddReasons(const std::vector<v1::RecordedEvent>& failures, std::vector<AgentStatus>* agents);

}  // namespace tacho::ctl
