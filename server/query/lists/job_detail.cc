// Collects what the store knows of one job and puts it into one message. The entities, which may be
// many, are cut at a limit that fits a client's message.
#include "server/query/lists/job_detail.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/host_part.h"
#include "server/query/read/job_marks.h"
#include "server/query/read/job_state.h"
#include "server/query/read/selection.h"
#include "server/query/read/timeline.h"

namespace tacho::server::query {
namespace {

// Works for any message with these four fields.
template <typename Proto>
void SetSeen(const storage::Extent& extent, Proto* proto) {
  if (extent.first_time_ns > extent.last_time_ns) return;
  proto->set_first_seen_unix_ns(extent.first_time_ns);
  proto->set_last_seen_unix_ns(extent.last_time_ns);
}

void TaskToProto(const storage::TaskInfo& task, v1::Task* proto) {
  if (task.task.has_value()) proto->set_task(*task.task);
  proto->set_host(task.host);
  proto->set_attempt(task.attempt);
  SetSeen(task.extent, proto);
  if (task.extent.last_step.has_value()) proto->set_last_step(*task.extent.last_step);
  proto->set_series(task.series);
}

// Works for an attempt and a task.
template <typename Proto>
void SetEnd(const storage::Event& event, Proto* proto) {
  proto->set_ended_unix_ns(event.time_ns);
  proto->set_end_message(event.message);
  proto->mutable_end_fields()->insert(event.fields.begin(), event.fields.end());
}

// The sources of an answer.
struct Parts {
  storage::JobDetail detail;
  storage::JobEntities entities;
  Ends ends;
  size_t most = 0;  // Entities of a kind.
};

// `of_job` is the state of the job, which is that of its newest attempt.
void AddAttempts(const Parts& parts, v1::JobState of_job, absl::Time now,
                 v1::GetJobResponse* response) {
  const Timeline timeline = Timeline::Of(parts.detail.attempts);
  std::map<uint32_t, std::pair<std::set<uint32_t>, std::set<absl::string_view>>> who;
  for (const auto& one : parts.entities.incarnations) {
    auto& [tasks, hosts] = who[one.attempt];
    if (one.task.has_value()) tasks.insert(*one.task);
    hosts.insert(one.host);
  }
  for (const storage::AttemptInfo& info : parts.detail.attempts) {
    v1::Attempt* proto = response->add_attempts();
    proto->set_attempt(info.attempt);
    SetSeen(info.extent, proto);
    if (info.extent.first_step.has_value()) proto->set_first_step(*info.extent.first_step);
    if (info.extent.last_step.has_value()) proto->set_last_step(*info.extent.last_step);
    proto->mutable_attributes()->insert(info.attributes.begin(), info.attributes.end());
    const auto end = parts.ends.attempts.find(info.attempt);
    std::optional<int64_t> ended_ns;
    if (end != parts.ends.attempts.end()) {
      ended_ns = end->second.time_ns;
      SetEnd(end->second, proto);
    }
    v1::JobState state = StateOf(info.extent, ended_ns, now);
    const bool newest = info.attempt == parts.detail.attempts.back().attempt;
    if (state != v1::JOB_STATE_ENDED && !newest) state = v1::JOB_STATE_REPLACED;
    // Not all of its tasks have ended.
    if (state == v1::JOB_STATE_ENDED && newest) state = of_job;
    proto->set_state(state);
    for (const StepInterval& steps : timeline.SupersededOf(info.attempt)) {
      v1::StepRange* range = proto->add_superseded();
      range->set_begin(steps.first);
      range->set_end(steps.last);
    }
    proto->set_tasks(static_cast<uint32_t>(who[info.attempt].first.size()));
    proto->set_hosts(static_cast<uint32_t>(who[info.attempt].second.size()));
  }
  for (const AttemptSteps& span : timeline.spans()) {
    v1::EffectiveSpan* proto = response->add_timeline();
    proto->set_first_step(span.steps.first);
    proto->set_last_step(span.steps.last);
    proto->set_attempt(span.attempt);
  }
}

using TaskByHost =
    std::map<std::pair<std::optional<uint32_t>, absl::string_view>, const storage::TaskInfo*>;

// Chips, one entry for each (host, chip). It names the task there if rows of the chip belong to
// one; if they belong to several, the task that was seen last.
std::vector<v1::Chip> ChipsOf(const Parts& parts) {
  TaskByHost tasks;
  for (const auto& task : parts.detail.tasks) tasks[{task.task, task.host}] = &task;
  std::vector<v1::Chip> chips;
  storage::Extent seen;  // When chips.back() was seen.
  int64_t task_seen_ns = INT64_MIN;
  for (const auto& info : parts.entities.chips) {
    if (chips.empty() || chips.back().host() != info.host || chips.back().chip() != info.chip) {
      v1::Chip& added = chips.emplace_back();
      added.set_host(info.host);
      added.set_chip(info.chip);
      seen = storage::Extent();
      task_seen_ns = INT64_MIN;
    }
    v1::Chip& chip = chips.back();
    chip.set_series(chip.series() + info.series);
    const auto task = tasks.find({info.task, info.host});
    if (task == tasks.end()) continue;
    const storage::Extent& extent = task->second->extent;
    const int64_t seen_ns = extent.last_time_ns;
    seen.Include(extent);
    SetSeen(seen, &chip);
    if (info.task.has_value() && seen_ns >= task_seen_ns) {
      chip.set_task(*info.task);
      task_seen_ns = seen_ns;
    }
  }
  return chips;
}

void AddHosts(const Parts& parts, const std::vector<v1::Chip>& chips,
              v1::GetJobResponse* response) {
  struct Host {
    storage::Extent extent;
    std::set<uint32_t> tasks;
    uint64_t series = 0;
    uint32_t chips = 0;
  };
  std::map<absl::string_view, Host> hosts;
  for (const storage::TaskInfo& task : parts.detail.tasks) {
    Host& host = hosts[task.host];
    host.extent.Include(task.extent);
    if (task.task.has_value()) host.tasks.insert(*task.task);
    host.series += task.series;
  }
  for (const v1::Chip& chip : chips) ++hosts[chip.host()].chips;
  for (const auto& [name, host] : hosts) {
    if (static_cast<size_t>(response->hosts_size()) == parts.most) break;
    v1::Host* proto = response->add_hosts();
    proto->set_name(std::string(name));
    SetSeen(host.extent, proto);
    proto->mutable_tasks()->Add(host.tasks.begin(), host.tasks.end());
    proto->set_chips(host.chips);
    proto->set_series(host.series);
  }
}

void AddTasks(const Parts& parts, absl::Time now, v1::GetJobResponse* response) {
  for (const storage::TaskInfo& task : parts.detail.tasks) {
    if (static_cast<size_t>(response->tasks_size()) == parts.most) break;
    v1::Task* proto = response->add_tasks();
    TaskToProto(task, proto);
    const auto end = parts.ends.tasks.find({task.task, task.host});
    if (end != parts.ends.tasks.end()) SetEnd(end->second, proto);
    proto->set_state(end != parts.ends.tasks.end() ? v1::JOB_STATE_ENDED
                                                   : StateOf(task.extent, std::nullopt, now));
  }
}

void AddEntities(const Parts& parts, v1::GetJobResponse* response) {
  std::vector<v1::Chip> chips = ChipsOf(parts);
  AddHosts(parts, chips, response);
  response->set_chips_total(chips.size());
  chips.resize(std::min(chips.size(), parts.most));
  response->mutable_chips()->Assign(chips.begin(), chips.end());
  response->set_incarnations_total(parts.entities.incarnations.size());
  for (const auto& one : parts.entities.incarnations) {
    if (static_cast<size_t>(response->incarnations_size()) == parts.most) break;
    v1::Incarnation* proto = response->add_incarnations();
    proto->set_attempt(one.attempt);
    if (one.task.has_value()) proto->set_task(*one.task);
    proto->set_host(one.host);
    proto->set_series(one.series);
  }
}

void AddRefusals(const limits::JobRefusals* refusals, const std::string& job,
                 v1::GetJobResponse* response) {
  if (refusals == nullptr) return;
  uint64_t samples = 0;
  for (const limits::JobRefusal& one : refusals->Of(job)) {
    samples += one.samples;
    v1::JobRefusal* proto = response->add_refusals();
    proto->set_reason(one.reason);
    proto->set_samples(one.samples);
    proto->set_example(one.example);
    proto->set_detail(one.detail);
    proto->set_last_unix_ns(absl::ToUnixNanos(one.last));
  }
  response->mutable_job()->set_refused_samples(samples);
}

}  // namespace

void ToProto(const storage::JobSummary& job, v1::Job* proto) {
  proto->set_name(job.name);
  SetSeen(job.extent, proto);
  if (job.extent.last_step.has_value()) proto->set_last_step(*job.extent.last_step);
  proto->set_attempts(job.attempts);
  proto->set_tasks(job.tasks);
  proto->set_hosts(job.hosts);
  proto->set_series(job.series);
}

void ToProto(const storage::JobSummary& job, const storage::JobOutline& outline, v1::JobState state,
             v1::Job* proto) {
  ToProto(job, proto);
  proto->set_metrics(static_cast<uint32_t>(outline.metrics));
  proto->set_state(state);
  v1::JobMarks marks = MarksOf(outline.merged_attributes);
  if (HasMarks(marks)) *proto->mutable_marks() = std::move(marks);
}

absl::Status GetJob(const storage::Store& store, const v1::GetJobRequest& request, absl::Time now,
                    const QueryControl& control, v1::GetJobResponse* response,
                    const limits::JobRefusals* refusals) {
  if (request.job().empty()) return errors::InvalidFieldError("job", "is required");
  if (request.max_entities() > kMaxEntities) {
    return errors::InvalidFieldError("max_entities", absl::StrCat("is at most ", kMaxEntities));
  }
  std::optional<storage::JobDetail> detail = store.FindJob(request.job());
  if (!detail.has_value()) {
    if (refusals == nullptr || !refusals->IsRecent(request.job(), now)) {
      return NoSuchJob(store, request.job());
    }
    AddRefusals(refusals, request.job(), response);
    response->mutable_job()->set_name(request.job());
    response->mutable_job()->set_state(v1::JOB_STATE_SILENT);
    return absl::OkStatus();
  }
  TACHO_ASSIGN_OR_RETURN(auto entities, store.Entities(request.job()));
  if (request.has_part()) {
    TACHO_ASSIGN_OR_RETURN(const HostPart part, ReadHostPart(request.part(), "part"));
    KeepPart(part, &*detail);
    KeepPart(part, request.job(), &entities);
  }
  TACHO_ASSIGN_OR_RETURN(auto ends, EndsOf(store, *detail, control));
  TACHO_ASSIGN_OR_RETURN(const auto state, StateOfJob(store, detail->summary, now));
  const Parts parts = {*std::move(detail), std::move(entities), std::move(ends),
                       request.max_entities() == 0 ? kDefaultEntities : request.max_entities()};
  v1::Job* job = response->mutable_job();
  ToProto(parts.detail.summary, job);
  job->set_metrics(static_cast<uint32_t>(parts.detail.metrics.size()));
  job->set_state(state);
  v1::JobMarks marks = MarksOf(MergedAttributes(parts.detail.attempts));
  if (HasMarks(marks)) *job->mutable_marks() = std::move(marks);
  AddRefusals(refusals, request.job(), response);
  AddAttempts(parts, state, now, response);
  AddTasks(parts, now, response);
  AddEntities(parts, response);
  for (const auto& metric : parts.detail.metrics) ToProto(metric, response->add_metrics());
  return absl::OkStatus();
}

}  // namespace tacho::server::query
