// Members answer in the order of one collector, so that merging their lists by the same order, and
// cutting them at the same length, gives its answer.
#include "server/cluster/asking/forward_merge.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "google/protobuf/repeated_ptr_field.h"
#include "server/cluster/split/merge_parts.h"
#include "server/query/lists/job_listing.h"
#include "server/query/lists/job_position.h"
#include "server/query/lists/listings.h"
#include "server/query/read/job_state.h"
#include "server/view/fleet_answer.h"

namespace tacho::server::cluster {
namespace {

using query::JobPosition;

constexpr int kFleetConditions = 3;  // As FleetJob.conditions has it.

struct ListedJob {
  JobPosition position;
  v1::Job job;
};

JobPosition PositionOf(int64_t active_since_ns, const v1::Job& job) {
  const bool has_rows = job.first_seen_unix_ns() != 0 || job.last_seen_unix_ns() != 0;
  return JobPosition::Of(active_since_ns, has_rows ? job.last_seen_unix_ns() : INT64_MIN,
                         job.name());
}

// The first end of an answer that another page follows: what comes behind it may be missing.
absl::StatusOr<std::optional<JobPosition>> FirstEnd(
    const std::vector<Answered<v1::ListJobsResponse>>& answers) {
  std::optional<JobPosition> first;
  for (const auto& one : answers) {
    if (one.response.next_page_token().empty()) continue;
    auto end = query::ReadPageToken(one.response.next_page_token());
    if (!end.ok()) return end.status();
    if (!first.has_value() || IsBefore(*end, *first)) first = *std::move(end);
  }
  return first;
}

// The entries of all answers, the largest first, and only so many.
template <typename Message, typename Size>
void MergeLargest(std::vector<Message> all, size_t most, Size size,
                  google::protobuf::RepeatedPtrField<Message>* to) {
  std::stable_sort(all.begin(), all.end(),
                   [&](const Message& a, const Message& b) { return size(a) > size(b); });
  if (all.size() > most) all.resize(most);
  for (Message& one : all) to->Add(std::move(one));
}

template <typename Message>
void Append(google::protobuf::RepeatedPtrField<Message>* from, std::vector<Message>* to) {
  std::move(from->begin(), from->end(), std::back_inserter(*to));
}

template <typename Message>
void AppendKept(const Membership& membership, uint32_t shard,
                google::protobuf::RepeatedPtrField<Message>* from, std::vector<Message>* to) {
  for (Message& one : *from) {
    const bool kept = one.job().empty() || membership.IsSplit(one.job()) ||
                      membership.ShardOf(one.job()) == shard;
    if (kept) to->push_back(std::move(one));
  }
}

// A condition of a split job is true if it is true at one member.
void KeepTrueOfSplit(const Membership& membership, std::vector<v1::Condition>* conditions) {
  std::set<std::pair<std::string, std::string>> known, told;
  const auto key = [](const v1::Condition& one) { return std::pair(one.job(), one.condition()); };
  for (const v1::Condition& one : *conditions) {
    if (one.status() == v1::CONDITION_STATUS_TRUE) known.insert(key(one));
  }
  std::erase_if(*conditions, [&](const v1::Condition& one) {
    if (!membership.IsSplit(one.job()) || one.status() == v1::CONDITION_STATUS_TRUE) return false;
    return known.contains(key(one)) || !told.insert(key(one)).second;
  });
}

// Entries of one split job become one.
void AddUpSplit(const Membership& membership, bool sums, std::vector<v1::CardinalityUse>* uses) {
  std::map<std::pair<std::string, std::string>, size_t> places;
  std::vector<v1::CardinalityUse> merged;
  for (v1::CardinalityUse& one : *uses) {
    if (membership.IsSplit(one.job())) {
      const auto [place, is_new] = places.try_emplace({one.job(), one.name()}, merged.size());
      if (!is_new) {
        v1::CardinalityUse& known = merged[place->second];
        known.set_used(sums ? known.used() + one.used() : std::max(known.used(), one.used()));
        known.set_limit(sums ? known.limit() + one.limit() : std::max(known.limit(), one.limit()));
        continue;
      }
    }
    merged.push_back(std::move(one));
  }
  *uses = std::move(merged);
}

// Adds a member's row of a split job to what others have of it.
void AddFleetJob(const Membership& membership, uint32_t shard, v1::FleetJob from,
                 v1::FleetJob* to) {
  AddJob(from.job(), to->mutable_job());
  to->set_rank(std::max(to->rank(), from.rank()));
  to->mutable_attributes()->insert(from.attributes().begin(), from.attributes().end());
  to->set_chips(to->chips() + from.chips());
  for (v1::Condition& one : *from.mutable_conditions()) {
    if (!SpeaksFor(membership, shard, one)) continue;
    if (to->conditions_size() < kFleetConditions) *to->add_conditions() = std::move(one);
    to->set_conditions_true(to->conditions_true() + 1);
  }
}

// Adds a job, or takes it out, as view::FleetTotals counts them.
void CountJob(const v1::FleetJob& job, int change, v1::FleetTotals* totals) {
  const auto add = [change](uint32_t count) {
    return static_cast<uint32_t>(static_cast<int64_t>(count) + change);
  };
  totals->set_jobs(add(totals->jobs()));
  if (job.job().state() == v1::JOB_STATE_SILENT) return totals->set_silent(add(totals->silent()));
  if (job.job().state() != v1::JOB_STATE_RUNNING) return totals->set_ended(add(totals->ended()));
  totals->set_running(add(totals->running()));
  if (job.conditions().empty()) return;
  if (job.conditions(0).severity() == v1::CONDITION_SEVERITY_CRITICAL) {
    totals->set_critical(add(totals->critical()));
  } else if (job.conditions(0).severity() == v1::CONDITION_SEVERITY_WARNING) {
    totals->set_warning(add(totals->warning()));
  }
}

void AddTotals(const v1::CardinalityResponse& from, v1::CardinalityResponse* to) {
  for (const v1::CardinalityUse& total : from.totals()) {
    auto* const totals = to->mutable_totals();
    const auto known = std::find_if(totals->begin(), totals->end(),
                                    [&](const auto& one) { return one.name() == total.name(); });
    if (known == totals->end()) {
      *totals->Add() = total;
    } else {
      known->set_used(known->used() + total.used());
      known->set_limit(known->limit() + total.limit());
    }
  }
  to->set_jobs_left_out(to->jobs_left_out() + from.jobs_left_out());
}

// The member of a job knows that it uses a host, and others may not. Copies of host rows say the
// same of a host's chips as its own rows.
void AddHosts(const view::FleetHosts& from, std::map<std::string, v1::FleetHost>* to) {
  for (const v1::FleetHost& host : from) {
    const auto [known, is_new] = to->try_emplace(host.name());
    v1::FleetHost& merged = known->second;
    if (is_new) merged.set_name(host.name());
    merged.set_chips(std::max(merged.chips(), host.chips()));
    merged.set_used(merged.used() || host.used());
  }
}

void AddTotals(const v1::FleetTotals& from, v1::FleetTotals* to) {
  to->set_jobs(to->jobs() + from.jobs());
  to->set_running(to->running() + from.running());
  to->set_silent(to->silent() + from.silent());
  to->set_ended(to->ended() + from.ended());
  to->set_critical(to->critical() + from.critical());
  to->set_warning(to->warning() + from.warning());
  to->set_chips(to->chips() + from.chips());
  to->set_chips_sick(to->chips_sick() + from.chips_sick());
  to->set_productive_seconds(to->productive_seconds() + from.productive_seconds());
  to->set_wall_seconds(to->wall_seconds() + from.wall_seconds());
  if (to->wall_seconds() > 0) {
    to->set_goodput_ratio(to->productive_seconds() / to->wall_seconds());
  }
}

}  // namespace

bool SpeaksFor(const Membership& membership, uint32_t shard, const v1::Condition& condition) {
  const std::string& job = condition.job();
  if (!membership.IsSplit(job)) return membership.ShardOf(job) == shard;
  if (!condition.culprits().empty() && !condition.culprits(0).host().empty()) {
    return membership.ShardOf(job, condition.culprits(0).host()) == shard;
  }
  return condition.status() == v1::CONDITION_STATUS_TRUE || membership.ShardOf(job) == shard;
}

v1::ListJobsRequest JobsAsked(v1::ListJobsRequest request, absl::Time now) {
  if (request.page_token().empty()) {
    request.set_page_token(query::PageTokenOf(
        {.active_since_ns = absl::ToUnixNanos(now - query::kActiveFor), .name = ""}));
  }
  return request;
}

grpc::Status MergeJobs(const Membership& membership, const v1::ListJobsRequest& asked,
                       std::vector<Answered<v1::ListJobsResponse>>* answers,
                       v1::ListJobsResponse* to) {
  if (grpc::Status error = FirstError(*answers); !error.ok()) return error;
  const auto begin = query::ReadPageToken(asked.page_token());
  if (!begin.ok()) return errors::ToGrpcStatus(begin.status());
  const auto end = FirstEnd(*answers);
  if (!end.ok()) return errors::ToGrpcStatus(absl::InternalError(end.status().message()));
  std::vector<ListedJob> jobs;
  std::map<std::string, v1::Job> split;
  const auto add = [&](v1::Job job) {
    JobPosition position = PositionOf(begin->active_since_ns, job);
    if (end->has_value() && IsBefore(**end, position)) return;
    jobs.push_back({std::move(position), std::move(job)});
  };
  for (auto& one : *answers) {
    for (v1::Job& job : *one.response.mutable_jobs()) {
      if (membership.IsSplit(job.name())) {
        AddJob(job, &split[job.name()]);
      } else if (membership.ShardOf(job.name()) == one.shard) {
        add(std::move(job));
      }
    }
  }
  for (auto& [name, job] : split) add(std::move(job));
  std::sort(jobs.begin(), jobs.end(), [](const ListedJob& a, const ListedJob& b) {
    return IsBefore(a.position, b.position);
  });
  const size_t page = asked.page_size() == 0 ? query::kDefaultPageSize : asked.page_size();
  if (jobs.size() > page) {
    jobs.resize(page);
    to->set_next_page_token(query::PageTokenOf(jobs.back().position));
  } else if (end->has_value()) {
    to->set_next_page_token(query::PageTokenOf(**end));
  }
  for (ListedJob& one : jobs) *to->add_jobs() = std::move(one.job);
  return grpc::Status::OK;
}

grpc::Status MergeConditions(const Membership& membership,
                             std::vector<Answered<v1::ConditionsResponse>>* answers,
                             v1::ConditionsResponse* to) {
  if (grpc::Status error = FirstError(*answers); !error.ok()) return error;
  std::vector<v1::Condition> conditions;
  std::vector<v1::JobProfile> profiles;
  for (auto& one : *answers) {
    for (v1::Condition& condition : *one.response.mutable_conditions()) {
      if (SpeaksFor(membership, one.shard, condition)) conditions.push_back(std::move(condition));
    }
    AppendKept(membership, one.shard, one.response.mutable_profiles(), &profiles);
  }
  KeepTrueOfSplit(membership, &conditions);
  std::set<std::string> profiled;
  std::erase_if(profiles, [&](const v1::JobProfile& one) {
    return membership.IsSplit(one.job()) && !profiled.insert(one.job()).second;
  });
  const auto by_job = [](const auto& a, const auto& b) { return a.job() < b.job(); };
  std::stable_sort(conditions.begin(), conditions.end(), by_job);
  std::stable_sort(profiles.begin(), profiles.end(), by_job);
  for (v1::Condition& one : conditions) *to->add_conditions() = std::move(one);
  for (v1::JobProfile& one : profiles) *to->add_profiles() = std::move(one);
  return grpc::Status::OK;
}

grpc::Status MergeCardinality(const Membership& membership, const v1::CardinalityRequest& request,
                              std::vector<Answered<v1::CardinalityResponse>>* answers,
                              v1::CardinalityResponse* to) {
  if (grpc::Status error = FirstError(*answers); !error.ok()) return error;
  std::vector<v1::CardinalityUse> jobs, metrics, labels;
  std::vector<v1::CardinalityRefusal> refusals;
  for (auto& one : *answers) {
    AddTotals(one.response, to);
    AppendKept(membership, one.shard, one.response.mutable_jobs(), &jobs);
    AppendKept(membership, one.shard, one.response.mutable_metrics(), &metrics);
    AppendKept(membership, one.shard, one.response.mutable_labels(), &labels);
    Append(one.response.mutable_refusals(), &refusals);
  }
  AddUpSplit(membership, /*sums=*/true, &jobs);
  AddUpSplit(membership, /*sums=*/true, &metrics);
  AddUpSplit(membership, /*sums=*/false, &labels);
  const size_t top = request.top() == 0 ? query::kDefaultTop : request.top();
  const auto used = [](const v1::CardinalityUse& one) { return one.used(); };
  MergeLargest(std::move(jobs), top, used, to->mutable_jobs());
  MergeLargest(std::move(metrics), top, used, to->mutable_metrics());
  MergeLargest(std::move(labels), top, used, to->mutable_labels());
  MergeLargest(
      std::move(refusals), top, [](const auto& one) { return one.series(); },
      to->mutable_refusals());
  return grpc::Status::OK;
}

v1::FleetRequest FleetAsked(v1::FleetRequest request) {
  request.clear_since_revision();
  request.set_hosts(true);
  return request;
}

grpc::Status MergeFleet(const Membership& membership, const v1::FleetRequest& request,
                        std::vector<Answered<v1::FleetResponse>>* answers, v1::FleetResponse* to) {
  if (grpc::Status error = FirstError(*answers); !error.ok()) return error;
  std::vector<v1::FleetJob> jobs;
  std::map<std::string, v1::FleetJob> split;
  std::map<std::string, v1::FleetHost> hosts;
  bool knows_chips = false;
  uint32_t left_out = 0;
  for (auto& one : *answers) {
    AddTotals(one.response.totals(), to->mutable_totals());
    knows_chips = knows_chips || one.response.totals().has_chips_idle();
    AddHosts(one.response.hosts(), &hosts);
    for (v1::FleetJob& job : *one.response.mutable_jobs()) {
      const std::string& name = job.job().name();
      if (membership.IsSplit(name)) {
        CountJob(job, -1, to->mutable_totals());
        AddFleetJob(membership, one.shard, job, &split[name]);
      } else if (membership.ShardOf(name) == one.shard) {
        jobs.push_back(std::move(job));
      }
    }
    left_out += one.response.left_out();
    if (one.shard == membership.own()) {
      to->set_revision(one.response.revision());
      to->set_clock_unix_ns(one.response.clock_unix_ns());
    }
  }
  for (auto& [name, job] : split) {
    CountJob(job, 1, to->mutable_totals());
    jobs.push_back(std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(), [](const v1::FleetJob& a, const v1::FleetJob& b) {
    if (a.rank() != b.rank()) return a.rank() > b.rank();
    return a.job().name() < b.job().name();
  });
  const size_t most = request.max_jobs() == 0 ? view::kDefaultFleetJobs : request.max_jobs();
  if (jobs.size() > most) {
    left_out += static_cast<uint32_t>(jobs.size() - most);
    jobs.resize(most);
  }
  for (v1::FleetJob& job : jobs) *to->add_jobs() = std::move(job);
  for (auto& [name, host] : hosts) *to->add_hosts() = std::move(host);
  if (knows_chips) to->mutable_totals()->set_chips_idle(view::IdleChips(to->hosts()));
  if (!request.hosts()) to->clear_hosts();
  to->set_left_out(left_out);
  to->set_complete(true);
  return grpc::Status::OK;
}

}  // namespace tacho::server::cluster
