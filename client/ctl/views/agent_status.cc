// Assembles the state of each agent from the newest samples of its own metrics. Samples that are
// much older than its newest row belong to sources that no longer exist.
#include "client/ctl/views/agent_status.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/base/saturate.h"

namespace tacho::ctl {
namespace {

// One call may return samples of two rows, if a row arrives meanwhile. Samples that are older
// belong to a source that no longer exists, or to an earlier reason.
constexpr int64_t kOneMomentNs = 60'000'000'000;
constexpr char kSynchronized[] = "host_clock_synchronized";
// As in the condition ClockSkewed.
constexpr double kClockOffSeconds = 1;

std::string LabelOf(const v1::SeriesInfo& series, absl::string_view name) {
  for (const v1::Label& label : series.labels()) {
    if (label.name() == name) return label.value();
  }
  return "";
}

uint64_t Whole(const v1::LatestSample& sample) { return SaturatingCast<uint64_t>(sample.value()); }

int64_t ShiftedBySeconds(const v1::LatestSample& sample, double seconds) {
  return AddSeconds(sample.time_unix_ns(), seconds);
}

// The newest samples of one agent.
using Samples = std::vector<const v1::LatestSample*>;

void TakeSourceSample(const v1::LatestSample& sample, SourceStatus* source) {
  const std::string& metric = sample.series().metric().name();
  if (metric == "tacho_agent_source_up") source->failing = sample.value() == 0;
  if (metric == "tacho_agent_source_polls_total") source->polls = Whole(sample);
  if (metric == "tacho_agent_source_failures_total") source->failures = Whole(sample);
  if (metric == "tacho_agent_source_lost_rows_total") source->lost_rows = Whole(sample);
  if (metric == "tacho_agent_source_failing") source->code = LabelOf(sample.series(), "reason");
  if (metric == "tacho_agent_source_failing_seconds") {
    source->since_unix_ns = ShiftedBySeconds(sample, -sample.value());
  }
  if (metric == "tacho_agent_source_retry_seconds") {
    source->retry_unix_ns = ShiftedBySeconds(sample, sample.value());
  }
}

void TakeAgentSample(const v1::LatestSample& sample, AgentStatus* agent) {
  const std::string& metric = sample.series().metric().name();
  if (metric == "tacho_agent_info") {
    agent->id = LabelOf(sample.series(), "agent_id");
    agent->version = LabelOf(sample.series(), "version");
  }
  if (metric == "tacho_agent_spool_messages") agent->waiting_messages = Whole(sample);
  if (metric == "tacho_agent_spool_bytes") agent->waiting_bytes = Whole(sample);
  if (metric == "tacho_agent_rows_total") agent->rows = Whole(sample);
  if (metric == "tacho_agent_lost_rows_total") agent->lost_rows = Whole(sample);
  if (metric == "tacho_agent_refused_samples_total" && sample.value() > 0) {
    agent->refused[LabelOf(sample.series(), "reason")] = Whole(sample);
  }
  if (metric == "tacho_agent_resident_memory_bytes") agent->resident_bytes = Whole(sample);
  if (metric == "tacho_agent_clock_offset_seconds") agent->clock_offset_seconds = sample.value();
  if (metric == "tacho_agent_clock_uncertainty_seconds") {
    agent->clock_uncertainty_seconds = sample.value();
  }
}

// The source of the host records it, and less often than the agent's rows come.
bool IsOfHost(const v1::LatestSample& sample) {
  return sample.series().metric().name() == kSynchronized;
}

AgentStatus Assess(Samples samples) {
  AgentStatus agent;
  for (const v1::LatestSample* sample : samples) {
    if (IsOfHost(*sample)) agent.clock_synchronized = sample->value() != 0;
  }
  std::erase_if(samples, [](const auto* sample) { return IsOfHost(*sample); });
  // Where a reason or a version has changed, the newer one counts.
  std::stable_sort(samples.begin(), samples.end(), [](const auto* a, const auto* b) {
    return a->time_unix_ns() < b->time_unix_ns();
  });
  agent.host = samples.back()->series().host();
  agent.last_seen_unix_ns = samples.back()->time_unix_ns();
  std::map<std::string, SourceStatus> sources;
  for (const v1::LatestSample* sample : samples) {
    if (sample->time_unix_ns() < agent.last_seen_unix_ns - kOneMomentNs) continue;
    const std::string source = LabelOf(sample->series(), "source");
    if (source.empty()) {
      TakeAgentSample(*sample, &agent);
    } else {
      TakeSourceSample(*sample, &sources[source]);
    }
  }
  for (auto& [name, source] : sources) {
    source.name = name;
    if (agent.lost_rows) *agent.lost_rows += source.lost_rows;
    if (!source.failing) {
      source.code.clear();
      source.since_unix_ns = source.retry_unix_ns = std::nullopt;
    }
    agent.sources.push_back(std::move(source));
  }
  return agent;
}

}  // namespace

size_t AgentStatus::failing() const {
  return static_cast<size_t>(
      std::count_if(sources.begin(), sources.end(), [](const auto& one) { return one.failing; }));
}

bool AgentStatus::clock_is_off() const {
  return std::abs(clock_offset_seconds.value_or(0)) - clock_uncertainty_seconds.value_or(0) >
         kClockOffSeconds;
}

const std::vector<std::string>& AgentMetrics() {
  static const auto* const metrics =
      new std::vector<std::string>{"tacho_agent_info",
                                   "tacho_agent_resident_memory_bytes",
                                   "tacho_agent_spool_messages",
                                   "tacho_agent_spool_bytes",
                                   "tacho_agent_rows_total",
                                   "tacho_agent_lost_rows_total",
                                   "tacho_agent_refused_samples_total",
                                   "tacho_agent_clock_offset_seconds",
                                   "tacho_agent_clock_uncertainty_seconds",
                                   kSynchronized,
                                   "tacho_agent_source_up",
                                   "tacho_agent_source_failing",
                                   "tacho_agent_source_failing_seconds",
                                   "tacho_agent_source_retry_seconds",
                                   "tacho_agent_source_polls_total",
                                   "tacho_agent_source_failures_total",
                                   "tacho_agent_source_lost_rows_total"};
  return *metrics;
}

std::vector<AgentStatus> AssessAgents(const std::vector<v1::LatestSample>& latest, absl::Time now,
                                      absl::Duration silent_after) {
  std::map<std::string, Samples> by_host;
  for (const v1::LatestSample& sample : latest) {
    by_host[sample.series().host()].push_back(&sample);
  }
  std::vector<AgentStatus> agents;
  for (auto& [host, samples] : by_host) {
    // Another program may record a host on which no agent runs.
    if (std::all_of(samples.begin(), samples.end(), [](auto* one) { return IsOfHost(*one); })) {
      continue;
    }
    AgentStatus& agent = agents.emplace_back(Assess(std::move(samples)));
    if (now - absl::FromUnixNanos(agent.last_seen_unix_ns) > silent_after) {
      agent.state = AgentStatus::State::kSilent;
    } else if (agent.failing() > 0) {
      agent.state = AgentStatus::State::kFailing;
    }
  }
  return agents;
}

void AddTasks(const v1::GetJobResponse& job, std::vector<AgentStatus>* agents) {
  for (const v1::Task& task : job.tasks()) {
    if (!task.has_task() || task.state() != v1::JOB_STATE_RUNNING) continue;
    const auto found =
        std::lower_bound(agents->begin(), agents->end(), task.host(),
                         [](const auto& agent, const auto& host) { return agent.host < host; });
    if (found == agents->end() || found->host != task.host()) continue;
    found->tasks[job.job().name()].push_back(task.task());
  }
}

std::optional<int64_t> FirstFailure(const std::vector<AgentStatus>& agents) {
  std::optional<int64_t> first;
  for (const AgentStatus& agent : agents) {
    for (const SourceStatus& source : agent.sources) {
      if (!source.failing) continue;
      const int64_t since = source.since_unix_ns.value_or(0);
      first = std::min(first.value_or(since), since);
    }
  }
  return first;
}

void AddReasons(const std::vector<v1::RecordedEvent>& failures, std::vector<AgentStatus>* agents) {
  std::map<std::pair<std::string, std::string>, const v1::RecordedEvent*> newest;
  for (const v1::RecordedEvent& event : failures) {
    const auto source = event.fields().find("source");
    if (source != event.fields().end()) newest[{event.source().host(), source->second}] = &event;
  }
  for (AgentStatus& agent : *agents) {
    for (SourceStatus& source : agent.sources) {
      const auto found = newest.find({agent.host, source.name});
      if (source.failing && found != newest.end()) source.reason = found->second->message();
    }
  }
}

}  // namespace tacho::ctl
