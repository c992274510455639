// 'jobs': the list of jobs with the conditions that hold.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/condition_text.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/text.h"
#include "client/ctl/views/job_status.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

// By job, those that hold, with their severity.
using ConditionsByJob = std::map<std::string, StringMap>;

// A list of jobs is worth showing without conditions: if they cannot be read, nullopt.
std::optional<ConditionsByJob> ReadConditions(QueryClient& client) {
  v1::ConditionsRequest request;
  request.add_statuses(v1::CONDITION_STATUS_TRUE);
  const auto answer = client.Conditions(request);
  if (!answer.ok()) return std::nullopt;
  std::vector<v1::Condition> conditions(answer->conditions().begin(), answer->conditions().end());
  SortConditions(&conditions);
  ConditionsByJob found;
  for (const v1::Condition& one : conditions) {
    found[one.job()].emplace_back(one.condition(), SeverityName(one.severity()));
  }
  return found;
}

Cell ConditionsCell(const std::optional<ConditionsByJob>& conditions, const std::string& job) {
  if (!conditions) return {};
  const auto found = conditions->find(job);
  return found == conditions->end() ? StringMap() : found->second;
}

// Nothing of it was stored, because the collector refused it.
bool IsRefused(const v1::Job& job) {
  return job.last_seen_unix_ns() == 0 && job.refused_samples() > 0;
}

// A job without a stored row has no time.
Cell SeenCell(int64_t unix_ns) { return unix_ns == 0 ? Cell() : UnixNs{unix_ns}; }

std::vector<Cell> Row(const v1::Job& job, const std::optional<ConditionsByJob>& conditions) {
  return {job.name(),
          uint64_t{job.tasks()},
          uint64_t{job.hosts()},
          uint64_t{job.attempts()},
          job.series(),
          job.has_last_step() ? Cell(int64_t{job.last_step()}) : Cell(),
          SeenCell(job.first_seen_unix_ns()),
          SeenCell(job.last_seen_unix_ns()),
          IsRefused(job) ? std::string("refused") : StateName(job.state()),
          ConditionsCell(conditions, job.name()),
          StringList(job.marks().tags().begin(), job.marks().tags().end()),
          job.marks().group().empty() ? Cell() : job.marks().group(),
          job.marks().note().empty() ? Cell() : job.marks().note()};
}

std::vector<FlagSpec> JobsFlags() {
  std::vector<FlagSpec> flags = {
      {.name = "state",
       .placeholder = "STATE",
       .help = "Only jobs that are running (rows came within five minutes), silent (none did, and "
               "no end was reported) or ended. Repeat for more.",
       .choices = {"running", "silent", "ended"},
       .repeated = true},
      {.name = "label",
       .letter = 'l',
       .placeholder = "NAME=VALUE",
       .help = "Only jobs for which this holds; also !=, =~ and !~. A name is an attribute of the "
               "latest attempt, or host. Repeat for more: all must hold.",
       .repeated = true},
      {.name = "tag",
       .placeholder = "TAG",
       .help = "Only jobs with this tag. Repeat for more: they must have all.",
       .repeated = true},
      {.name = "group", .placeholder = "NAME", .help = "Only jobs of this group."},
      {.name = "seen",
       .placeholder = "AGE",
       .help = "Only jobs that reported within the last 10m, 2d, …"},
      {.name = "sick",
       .help =
           "The sickest first: by the severity of the worst condition that holds, then by chips "
           "times the time since it began; at most 10,000 jobs. Not with --seen, --since and "
           "--until."}};
  flags.insert(flags.end(), TimeFlags().begin(), TimeFlags().end());
  flags.push_back({.name = "limit", .placeholder = "N", .help = "At most N jobs; 0 for all."});
  return flags;
}

absl::StatusOr<v1::ListJobsRequest> ParseJobsRequest(const Invocation& invocation) {
  const ParsedArgs& args = invocation.args;
  v1::ListJobsRequest request;
  if (!args.positionals().empty()) request.set_name_pattern(invocation.Positional(0));
  if (const auto age = args.Get("seen")) {
    const absl::StatusOr<absl::Duration> duration = ParseDuration(*age);
    if (!duration.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--seen ", duration.status().message()));
    }
    request.set_seen_within_ns(absl::ToInt64Nanoseconds(*duration));
  }
  TACHO_ASSIGN_OR_RETURN(const auto time,
                         ParseTimeRange(args, invocation.env.now, invocation.env.zone));
  if (time) *request.mutable_time() = *time;
  for (const std::string& state : args.GetAll("state")) request.add_states(StateOf(state));
  for (const std::string& label : args.GetAll("label")) {
    const absl::StatusOr<v1::Matcher> matcher = ParseMatcher(label);
    if (!matcher.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--label ", matcher.status().message()));
    }
    *request.add_matchers() = *matcher;
  }
  for (const std::string& tag : args.GetAll("tag")) {
    if (tag.empty()) return absl::InvalidArgumentError("--tag '': expected the name of a tag");
    request.add_tags(tag);
  }
  if (const auto group = args.Get("group")) {
    if (group->empty()) {
      return absl::InvalidArgumentError(
          "--group '': expected the name of a group; for jobs without one: --label group=");
    }
    request.set_group(*group);
  }
  return request;
}

// The most that FleetRequest.max_jobs takes.
constexpr uint32_t kMostSickJobs = 10'000;

// The same jobs in the order of View.Fleet. Says if it cannot list as many as are wanted.
absl::StatusOr<std::vector<v1::Job>> ListSickest(const Invocation& invocation, QueryClient& client,
                                                 const v1::ListJobsRequest& wanted,
                                                 uint64_t limit) {
  v1::FleetRequest request;
  request.set_name_pattern(wanted.name_pattern());
  *request.mutable_states() = wanted.states();
  *request.mutable_matchers() = wanted.matchers();
  *request.mutable_tags() = wanted.tags();
  request.set_group(wanted.group());
  const bool wants_more = limit == 0 || limit > kMostSickJobs;
  request.set_max_jobs(wants_more ? kMostSickJobs : static_cast<uint32_t>(limit));
  TACHO_ASSIGN_OR_RETURN(auto answer, client.Fleet(request));
  if (wants_more && answer.left_out() > 0) {
    *invocation.env.err << "tachoctl: " << Thousands(answer.left_out())
                        << (answer.left_out() == 1 ? " job more matches" : " jobs more match")
                        << "; --sick lists at most " << Thousands(kMostSickJobs) << "\n";
  }
  std::vector<v1::Job> jobs;
  for (v1::FleetJob& one : *answer.mutable_jobs()) jobs.push_back(std::move(*one.mutable_job()));
  return jobs;
}

// "no job matches 'bert' --state silent": what was asked for, as it was typed.
std::string WhatMatchesNothing(const Invocation& invocation) {
  std::string asked;
  if (!invocation.args.positionals().empty()) {
    absl::StrAppend(&asked, " '", invocation.Positional(0), "'");
  }
  for (const FlagSpec& flag : JobsFlags()) {
    if (flag.name == "limit" || flag.name == "sick") continue;
    for (const std::string& value : invocation.args.GetAll(flag.name)) {
      absl::StrAppend(&asked, " --", flag.name, " ", value);
    }
  }
  return asked.empty() ? "no jobs yet" : absl::StrCat("no job matches", asked);
}

int SayNone(const Invocation& invocation, QueryClient& client) {
  std::string text = absl::StrCat(WhatMatchesNothing(invocation), " at ", client.address());
  if (!invocation.args.positionals().empty()) {
    absl::StrAppend(&text, JobPatternHint(client, invocation.Positional(0)));
  }
  *invocation.env.err << "tachoctl: " << Printable(text) << "\n";
  return kNothing;
}

int RunJobs(const Invocation& invocation) {
  const absl::StatusOr<v1::ListJobsRequest> request = ParseJobsRequest(invocation);
  const auto limit = ParseNumber(invocation.args, "limit", 0, std::numeric_limits<uint64_t>::max());
  for (const absl::Status& parsed : {request.status(), limit.status()}) {
    if (!parsed.ok()) return UsageError(invocation.env, "jobs", std::string(parsed.message()));
  }
  const bool sick = invocation.args.Has("sick");
  if (sick && (request->seen_within_ns() > 0 || request->has_time())) {
    return UsageError(invocation.env, "jobs",
                      "--sick does not go with --seen, --since and --until: leave one out");
  }
  QueryClient client = Connect(invocation);
  const auto jobs = sick ? ListSickest(invocation, client, *request, limit->value_or(0))
                         : client.ListJobs(*request, limit->value_or(0));
  if (!jobs.ok()) return CallError(invocation, client, jobs.status());

  const std::optional<ConditionsByJob> conditions = ReadConditions(client);
  const bool any = conditions && !conditions->empty();
  const auto has = [&](const auto& of) { return std::any_of(jobs->begin(), jobs->end(), of); };
  const bool tags = has([](const v1::Job& job) { return job.marks().tags_size() > 0; });
  const bool groups = has([](const v1::Job& job) { return !job.marks().group().empty(); });
  RecordWriter writer(invocation, "jobs",
                      {{"job", "JOB", Kind::kText},
                       {"tasks", "TASKS", Kind::kCount},
                       {"hosts", "HOSTS", Kind::kCount},
                       {"attempts", "ATTEMPTS", Kind::kCount},
                       {"series", "SERIES", Kind::kCount},
                       {"last_step", "LAST STEP", Kind::kNumber},
                       {"first_seen", "FIRST SEEN", Kind::kTime},
                       {"last_seen", "LAST SEEN", Kind::kAge},
                       {"state", "STATE", Kind::kText},
                       {"conditions", any ? "CONDITIONS" : "", Kind::kMap},
                       {"tags", tags ? "TAGS" : "", Kind::kList},
                       {"group", groups ? "GROUP" : "", Kind::kText},
                       {"note", "", Kind::kText}});
  for (const v1::Job& job : *jobs) writer.Row(Row(job, conditions));
  writer.Finish();
  if (invocation.common.format == Format::kTable && has(IsRefused)) {
    *invocation.env.err
        << "tachoctl: the collector refused everything of some jobs; for the reasons "
           "and what to do: tachoctl status JOB\n";
  }
  return jobs->empty() ? SayNone(invocation, client) : kOk;
}

}  // namespace

Command JobsCommand() {
  return {
      .name = "jobs",
      .group = CommandGroup::kNow,
      .operands = "[PATTERN]",
      .summary = "List jobs: first those that report now, by name, then the others",
      .details =
          R"(PATTERN is an RE2 expression that must match the whole name of a job. The state of a job is running,
silent, ended, or refused: then the collector stored nothing of it, and 'tachoctl status JOB' says why.

Examples:
  tachoctl jobs
  tachoctl jobs 'bert-.*' --seen 1h
  tachoctl jobs --state silent --state running
  tachoctl jobs --label user=ana --label 'host=~web-.*' --since 7d
  tachoctl jobs --group lr-sweep --tag baseline
  tachoctl jobs --sick --limit 10
  tachoctl jobs -o json | jq -r '.jobs[].job'

JSON: {"jobs": [{"job", "tasks", "hosts", "attempts", "series", "last_step" or null,
  "first_seen", "first_seen_unix_ns", "last_seen", "last_seen_unix_ns", "state",
  "conditions": {NAME: SEVERITY} of those that hold, or null, "tags": [], "group" or null,
  "note" or null}]})",
      .flags = JobsFlags(),
      .min_operands = 0,
      .max_operands = 1,
      .run = RunJobs};
}

}  // namespace tacho::ctl
