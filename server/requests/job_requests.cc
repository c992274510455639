#include "server/requests/job_requests.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/phases/phases.h"
#include "server/requests/stack_groups.h"

namespace tacho::server::requests {
namespace {

constexpr absl::Duration kUsualTimeout = absl::Seconds(10);
constexpr absl::Duration kUsualProfile = absl::Seconds(2);
// Enough for the newest phase of each of 4,096 tasks.
constexpr size_t kMaxPhaseEvents = 20'000;
// A profiler server writes what it has recorded, and the agent its file.
constexpr absl::Duration kAfterProfile = absl::Seconds(30);

v1::AgentRequest RequestFor(const std::string& job, uint32_t attempt,
                            const google::protobuf::RepeatedField<uint32_t>& tasks) {
  v1::AgentRequest request;
  request.set_job(job);
  request.set_attempt(attempt);
  *request.mutable_tasks() = tasks;
  return request;
}

v1::AbsentTask Absent(uint32_t task, const std::set<std::string>& hosts, std::string reason) {
  v1::AbsentTask absent;
  absent.set_task(task);
  absent.set_host(absl::StrJoin(hosts, ", "));
  absent.set_reason(std::move(reason));
  return absent;
}

absl::Status CheckMillis(absl::string_view field, uint32_t value) {
  if (value <= kMaxMillis) return absl::OkStatus();
  return errors::InvalidFieldError(
      field, absl::StrCat("is ", value, "; at most ", kMaxMillis, " is allowed"));
}

// Finds, for each task, what `of` finds in the answer of one of its hosts; else the reason.
template <typename Found, typename Missing, typename Of>
void ForEachTask(const std::map<uint32_t, std::set<std::string>>& tasks,
                 const ingest::AgentAsker::Answers& answers, const Of& of, const Found& found,
                 const Missing& missing) {
  for (const auto& [task, hosts] : tasks) {
    std::string reason = "its agent knows no ring of the task: the trainer is gone";
    bool has = false;
    for (const std::string& host : hosts) {
      const auto answer = answers.find(host);
      if (answer == answers.end()) continue;
      if (!answer->second.ok()) {
        reason = std::string(answer->second.status().message());
        continue;
      }
      const auto* const one = of(**answer->second, task);
      if (one == nullptr) continue;
      std::string trouble = found(task, host, *one);
      has = trouble.empty();
      if (has) break;
      reason = std::move(trouble);
    }
    if (!has) missing(Absent(task, hosts, std::move(reason)));
  }
}

const v1::TaskStacks* StacksOf(const v1::AgentFindings& findings, uint32_t task) {
  for (const v1::TaskStacks& stacks : findings.stacks()) {
    if (stacks.task() == task) return &stacks;
  }
  return nullptr;
}

const v1::TaskProfile* ProfileOf(const v1::AgentFindings& findings, uint32_t task) {
  for (const v1::TaskProfile& profile : findings.profiles()) {
    if (profile.task() == task) return &profile;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<JobRequests::Tasks> JobRequests::FindTasks(
    const std::string& job, const google::protobuf::RepeatedField<uint32_t>& only) const {
  if (job.empty()) return errors::InvalidFieldError("job", "is required");
  if (only.size() > kMaxTasksAsked) {
    return errors::InvalidFieldError(
        "tasks",
        absl::StrCat("has ", only.size(), " numbers; at most ", kMaxTasksAsked, " are allowed"));
  }
  TACHO_ASSIGN_OR_RETURN(const storage::JobEntities entities, options_.store->Entities(job));
  Tasks tasks;
  for (const auto& one : entities.incarnations)
    tasks.attempt = std::max(tasks.attempt, one.attempt);
  for (const auto& one : entities.incarnations) {
    if (one.attempt != tasks.attempt || !one.task.has_value()) continue;
    if (!only.empty() && std::find(only.begin(), only.end(), *one.task) == only.end()) continue;
    tasks.hosts[*one.task].insert(one.host);
    tasks.all_hosts.insert(one.host);
  }
  if (!tasks.hosts.empty()) return tasks;
  return absl::NotFoundError(
      absl::StrCat("job \"", job, "\" has no such task in attempt ", tasks.attempt));
}

JobRequests::Progress JobRequests::ReadProgress(const std::string& job, uint32_t attempt) const {
  Progress progress;
  const std::optional<storage::JobDetail> detail = options_.store->FindJob(job);
  if (!detail.has_value()) return progress;
  for (const storage::TaskInfo& task : detail->tasks) {
    if (!task.task.has_value() || task.attempt != attempt || !task.extent.last_step) continue;
    int64_t& step = progress.steps.try_emplace(*task.task, *task.extent.last_step).first->second;
    step = std::max(step, *task.extent.last_step);
  }
  // The newest events, which the pairs want in ascending time.
  std::vector<storage::Event> events;
  const absl::Status read = options_.store->VisitEvents(
      job, INT64_MIN, INT64_MAX, storage::Store::EventOrder::kNewestFirst,
      [&](storage::Event event) {
        const bool counts = event.source.attempt == attempt && phases::IsPhaseEvent(event.kind);
        if (counts) events.push_back(std::move(event));
        return events.size() < kMaxPhaseEvents;
      });
  if (!read.ok()) return progress;
  phases::PhasePairs pairs;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    pairs.Add(event->kind, event->time_ns, event->source.task);
  }
  for (const phases::PhaseInterval& phase : pairs.Take()) {
    if (!phase.open() || !phase.task.has_value()) continue;
    progress.phases[*phase.task] = std::string(phases::PhaseName(phase.phase));
  }
  return progress;
}

absl::StatusOr<v1::TakeStacksResponse> JobRequests::TakeStacks(const v1::TakeStacksRequest& request,
                                                               const std::string& cause) const {
  TACHO_RETURN_IF_ERROR(CheckMillis("timeout_ms", request.timeout_ms()));
  TACHO_ASSIGN_OR_RETURN(const Tasks tasks, FindTasks(request.job(), request.tasks()));
  v1::TakeStacksResponse response;
  response.set_job(request.job());
  response.set_attempt(tasks.attempt);
  response.set_taken_unix_ns(absl::ToUnixNanos(options_.now()));
  v1::AgentRequest asked = RequestFor(request.job(), tasks.attempt, request.tasks());
  asked.mutable_stacks();
  const absl::Duration timeout =
      request.timeout_ms() == 0 ? kUsualTimeout : absl::Milliseconds(request.timeout_ms());
  const auto answers = options_.asker->Ask(tasks.all_hosts, "stacks", asked, timeout);

  const Progress progress = ReadProgress(request.job(), tasks.attempt);
  std::vector<TaskOnHost> found;
  ForEachTask(
      tasks.hosts, answers, StacksOf,
      [&found, &progress](uint32_t task, const std::string& host, const v1::TaskStacks& stacks) {
        if (stacks.origin() == v1::STACK_ORIGIN_UNSPECIFIED) {
          return absl::StrCat(stacks.trouble().empty() ? "no stack" : stacks.trouble());
        }
        const auto step = progress.steps.find(task);
        const auto phase = progress.phases.find(task);
        found.push_back(
            {.task = task,
             .host = host,
             .untrusted = &stacks,
             .step = step == progress.steps.end() ? std::nullopt : std::optional(step->second),
             .phase = phase == progress.phases.end() ? "" : phase->second});
        return std::string();
      },
      [&response](v1::AbsentTask absent) { *response.add_absent() = std::move(absent); });
  for (v1::StackGroup& group : GroupStacks(found)) *response.add_groups() = std::move(group);
  options_.store->AppendEvent({}, ToEvent(response, cause), [](const absl::Status&) {});
  return response;
}

absl::StatusOr<v1::TakeProfilesResponse> JobRequests::TakeProfiles(
    const v1::TakeProfilesRequest& request, const std::string& cause) const {
  TACHO_RETURN_IF_ERROR(CheckMillis("duration_ms", request.duration_ms()));
  TACHO_ASSIGN_OR_RETURN(const Tasks tasks, FindTasks(request.job(), request.tasks()));
  const absl::Duration duration =
      request.duration_ms() == 0 ? kUsualProfile : absl::Milliseconds(request.duration_ms());
  v1::AgentRequest asked = RequestFor(request.job(), tasks.attempt, request.tasks());
  asked.mutable_profile()->set_duration_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(duration)));
  const auto answers =
      options_.asker->Ask(tasks.all_hosts, "profile", asked, duration + kAfterProfile);
  v1::TakeProfilesResponse response;
  response.set_job(request.job());
  response.set_attempt(tasks.attempt);
  ForEachTask(
      tasks.hosts, answers, ProfileOf,
      [&response](uint32_t, const std::string& host, const v1::TaskProfile& profile) {
        if (profile.path().empty()) return absl::StrCat("no profile: ", profile.trouble());
        *response.add_profiles() = profile;
        response.mutable_profiles()->rbegin()->set_host(host);
        return std::string();
      },
      [&response](v1::AbsentTask absent) { *response.add_absent() = std::move(absent); });
  for (const v1::TaskProfile& profile : response.profiles()) {
    storage::Event event;
    event.source = {.job = request.job(),
                    .task = profile.task(),
                    .attempt = tasks.attempt,
                    .host = profile.host()};
    event.time_ns = absl::ToUnixNanos(options_.now());
    event.kind = "profile_taken";
    event.message = absl::StrCat("profile of ", absl::FormatDuration(duration), ": ",
                                 profile.host(), ":", profile.path())
                        .substr(0, 1024);
    event.fields = {{"path", profile.path().substr(0, 1024)},
                    {"bytes", absl::StrCat(profile.bytes())},
                    {"cause", cause}};
    options_.store->AppendEvent({}, event, [](const absl::Status&) {});
  }
  return response;
}

}  // namespace tacho::server::requests
