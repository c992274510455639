// 'agents': the newest samples of agents' own metrics, then why sources fail and which tasks
// run, if the collector can say.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/text.h"
#include "client/ctl/views/agent_status.h"

namespace tacho::ctl {
namespace {

constexpr char kDefaultJob[] = "hosts";  // sources.host.job of the agents' configuration.

// 1,000 hosts with 16 sources have 120,000 series.
constexpr uint64_t kMostSeries = 1'000'000;
// Each job costs a call, for its tasks.
constexpr size_t kMostJobs = 1000;
constexpr uint32_t kMostEvents = 100'000;  // The most that a collector gives.

struct AgentsOptions {
  std::string job = kDefaultJob;
  std::string pattern;  // Empty: every host.
  absl::Duration seen = absl::Hours(24);
  absl::Duration silent_after = absl::Minutes(1);
  bool failing = false;
};

absl::Status ParseAge(const ParsedArgs& args, absl::string_view flag, absl::Duration* age) {
  const auto text = args.Get(flag);
  if (!text) return absl::OkStatus();
  const absl::StatusOr<absl::Duration> duration = ParseDuration(*text);
  if (!duration.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", duration.status().message()));
  }
  *age = *duration;
  return absl::OkStatus();
}

absl::StatusOr<AgentsOptions> ParseOptions(const ParsedArgs& args) {
  AgentsOptions options;
  if (!args.positionals().empty()) options.pattern = args.positionals()[0];
  options.job = args.Get("job").value_or(options.job);
  options.failing = args.Has("failing");
  for (const absl::Status& parsed : {ParseAge(args, "seen", &options.seen),
                                     ParseAge(args, "silent-after", &options.silent_after)}) {
    if (!parsed.ok()) return parsed;
  }
  return options;
}

absl::Status ReadLatest(QueryClient& client, const AgentsOptions& options,
                        std::vector<v1::LatestSample>* latest) {
  v1::LatestRequest request;
  v1::Selector& selector = *request.mutable_selector();
  selector.set_job(options.job);
  selector.mutable_metrics()->Assign(AgentMetrics().begin(), AgentMetrics().end());
  if (!options.pattern.empty()) {
    v1::Matcher& matcher = *selector.add_matchers();
    matcher.set_label("host");
    matcher.set_op(v1::Matcher::OP_MATCHES);
    matcher.set_value(options.pattern);
  }
  request.set_max_series(kMostSeries);
  return client.Latest(request, [&](const v1::LatestResponse& response) {
    latest->insert(latest->end(), response.samples().begin(), response.samples().end());
    return true;
  });
}

// The list is worth showing even without reasons and tasks.
void ReadReasons(QueryClient& client, const AgentsOptions& options,
                 std::vector<AgentStatus>* agents) {
  const std::optional<int64_t> first = FirstFailure(*agents);
  if (!first) return;
  v1::ListEventsRequest request;
  request.set_job(options.job);
  request.set_kind("source_failed");
  request.set_newest(kMostEvents);
  // An agent gives the event and the first row of a failure the same time.
  request.mutable_time()->set_begin_unix_ns(std::max<int64_t>(*first - 1'000'000'000, 0));
  std::vector<v1::RecordedEvent> failures;
  const absl::Status status = client.ListEvents(request, [&](const auto& response) {
    failures.insert(failures.end(), response.events().begin(), response.events().end());
    return true;
  });
  if (status.ok()) AddReasons(failures, agents);
}

void ReadTasks(const Invocation& invocation, QueryClient& client, const AgentsOptions& options,
               std::vector<AgentStatus>* agents) {
  v1::ListJobsRequest request;
  request.add_states(v1::JOB_STATE_RUNNING);
  const auto jobs = client.ListJobs(request, kMostJobs);
  if (!jobs.ok()) return;
  for (const v1::Job& job : *jobs) {
    if (job.name() == options.job) continue;
    if (const auto detail = client.GetJob(job.name()); detail.ok()) AddTasks(*detail, agents);
  }
  if (jobs->size() < kMostJobs) return;
  *invocation.env.err << "tachoctl: more than " << kMostJobs
                      << " jobs run; the tasks of the rest are left out\n";
}

void Show(const Invocation& invocation, const std::vector<AgentStatus>& agents) {
  switch (invocation.common.format) {
    case Format::kJson:
      return WriteAgentsJson(*invocation.env.out, agents);
    case Format::kCsv:
      return WriteAgentsCsv(*invocation.env.out, agents);
    case Format::kTable:
      if (!agents.empty()) PrintAgents(invocation.env, agents);
  }
}

int SayNone(const Invocation& invocation, const QueryClient& client, const AgentsOptions& options) {
  *invocation.env.err << "tachoctl: no agent"
                      << (options.pattern.empty()
                              ? std::string()
                              : absl::StrCat(" matches '", Printable(options.pattern), "'"))
                      << " in job '" << Printable(options.job) << "' within "
                      << ReadableDuration(options.seen) << " at " << Printable(client.address())
                      << "\n";
  return kNothing;
}

// The answer in place of an empty table.
void SayAllIsWell(const Invocation& invocation, size_t known) {
  if (invocation.common.format != Format::kTable) return;
  *invocation.env.out << (known == 1 ? std::string("The one agent neither fails nor is silent")
                                     : absl::StrCat("None of ", Thousands(known),
                                                    " agents fails or is silent"))
                      << "\n";
}

int RunAgents(const Invocation& invocation) {
  const absl::StatusOr<AgentsOptions> options = ParseOptions(invocation.args);
  if (!options.ok()) {
    return UsageError(invocation.env, "agents", std::string(options.status().message()));
  }
  QueryClient client = Connect(invocation);
  std::vector<v1::LatestSample> latest;
  if (const absl::Status read = ReadLatest(client, *options, &latest); !read.ok()) {
    return JobCallError(invocation, client, options->job, read);
  }
  std::vector<AgentStatus> agents = AssessAgents(latest, invocation.env.now, options->silent_after);
  std::erase_if(agents, [&](const AgentStatus& agent) {
    return invocation.env.now - absl::FromUnixNanos(agent.last_seen_unix_ns) > options->seen;
  });
  const size_t known = agents.size();
  if (options->failing) {
    std::erase_if(agents,
                  [](const AgentStatus& agent) { return agent.state == AgentStatus::State::kOk; });
  }
  if (!agents.empty()) {
    ReadReasons(client, *options, &agents);
    ReadTasks(invocation, client, *options, &agents);
  }
  Show(invocation, agents);
  if (known == 0) return SayNone(invocation, client, *options);
  if (agents.empty()) SayAllIsWell(invocation, known);
  return kOk;
}

}  // namespace

Command AgentsCommand() {
  return {
      .name = "agents",
      .group = CommandGroup::kNow,
      .operands = "[PATTERN]",
      .summary = "List agents: their backlog, lost rows, and which sources fail and why",
      .details =
          R"(PATTERN is an RE2 expression that must match the whole name of the host. An agent is silent when
it has not reported for a minute; its line then shows its last report. WAITING counts the messages in
its spool, ROWS and LOST count since the agent started; LOST includes rows that rings overwrote.
Below an agent, each source that fails is listed: for how long, when it tries again, and why. Then
come by how much the clock of its host is off, if that is more than a second, and what the collector
refused of the agent since its start.

The exit code is 0 if there are agents, whether or not one fails or is silent, also with --failing;
it is 1 if no agent matches.

Examples:
  tachoctl agents
  tachoctl agents 'web-.*' --failing
  tachoctl agents -o json | jq -r '.agents[] | select(.state != "ok") | .host'

JSON: {"agents": [{"agent", "host", "version", "state": "ok"|"failing"|"silent", "last_seen",
  "last_seen_unix_ns", "jobs": [{"job", "tasks": [N]}], "waiting_messages", "waiting_bytes",
  "rows", "lost_rows", "resident_bytes", "clock_offset_seconds", "clock_uncertainty_seconds",
  "clock_synchronized", "refused": [{"reason", "samples"}],
  "sources": [{"source", "state": "ok"|"failing", "code", "reason", "since", "since_unix_ns",
  "retry", "retry_unix_ns", "polls", "failures", "lost_rows"}]}]}. Unknown values are null. CSV has a line for each source.)",
      .flags = {{.name = "failing",
                 .help = "Only agents that are silent or have a failing source."},
                {.name = "seen",
                 .placeholder = "AGE",
                 .help = "Only agents that reported within the last 1h, 7d, … Default: 1d."},
                {.name = "silent-after",
                 .placeholder = "AGE",
                 .help =
                     "How long without a report counts as silence, like 30s or 10m. Default: 1m."},
                {.name = "job",
                 .placeholder = "JOB",
                 .help = "The job under which agents record their hosts (sources.host.job in "
                         "their configuration). Default: hosts."}},
      .min_operands = 0,
      .max_operands = 1,
      .run = RunAgents};
}

}  // namespace tacho::ctl
