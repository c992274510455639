// Filters by what memory knows first, sorts, and looks up the rest only for the jobs of the page,
// because states, hosts and attributes may need the disk.
#include "server/query/lists/job_listing.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/lists/job_detail.h"
#include "server/query/lists/job_filter.h"
#include "server/query/lists/job_position.h"
#include "server/query/read/job_state.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

// When something of a job was refused last, by its name, for those of which that was lately.
using RefusedJobs = absl::flat_hash_map<std::string, absl::Time>;

RefusedJobs RefusedLately(const limits::JobRefusals* refusals, absl::Time now) {
  RefusedJobs refused;
  if (refusals == nullptr) return refused;
  for (auto& job : refusals->RecentJobs(now)) refused.emplace(std::move(job.name), job.last);
  return refused;
}

// Adds those that the store does not have.
void AddRefused(const RefusedJobs& refused, std::vector<storage::JobSummary>* jobs) {
  absl::flat_hash_set<std::string> known;
  for (const storage::JobSummary& job : *jobs) known.insert(job.name);
  for (const auto& [name, last] : refused) {
    if (!known.contains(name)) jobs->emplace_back().name = name;
  }
}

// A job without rows was seen when something of it was refused.
bool IsSeenSince(const storage::JobSummary& job, const RefusedJobs& refused, absl::Time since) {
  if (job.extent.first_time_ns <= job.extent.last_time_ns) {
    return job.extent.last_time_ns >= absl::ToUnixNanos(since);
  }
  const auto found = refused.find(job.name);
  return found != refused.end() && found->second >= since;
}

// Jobs on which the conditions hold that need no look at the disk.
absl::StatusOr<std::vector<storage::JobSummary>> WantedJobs(const storage::Store& store,
                                                            const v1::ListJobsRequest& request,
                                                            const JobFilter& filter, absl::Time now,
                                                            const security::Rights& rights,
                                                            const limits::JobRefusals* refusals,
                                                            const OwnPart& own) {
  std::vector<storage::JobSummary> jobs = store.Jobs();
  KeepOwnParts(store, own, &jobs);
  const RefusedJobs refused = RefusedLately(refusals, now);
  AddRefused(refused, &jobs);
  std::erase_if(jobs, [&](const auto& job) { return !rights.MayTouch(job.name); });
  if (request.seen_within_ns() < 0)
    return errors::InvalidFieldError("seen_within_ns", "is negative");
  if (request.seen_within_ns() > 0) {
    const absl::Time since = now - absl::Nanoseconds(request.seen_within_ns());
    std::erase_if(jobs, [&](const auto& job) { return !IsSeenSince(job, refused, since); });
  }
  if (request.has_time()) {
    int64_t begin_ns = INT64_MIN;
    int64_t end_ns = INT64_MAX;
    absl::Status status = SetTimeRange(request.time(), &begin_ns, &end_ns);
    if (!status.ok()) return status;
    std::erase_if(jobs, [&](const auto& job) {
      const bool began = job.extent.first_time_ns < end_ns || end_ns == INT64_MAX;
      return !began || job.extent.last_time_ns < begin_ns;
    });
  }
  std::erase_if(jobs, [&](const auto& job) { return !filter.WantsName(job.name); });
  return jobs;
}

// Fills *proto; false if a condition does not hold. None holds for a job that has expired, unless
// something of it was refused lately: of that nothing but the name is known.
absl::StatusOr<bool> TakeJob(const storage::Store& store, const JobFilter& filter,
                             const storage::JobSummary& job, absl::Time now,
                             const limits::JobRefusals* refusals, v1::Job* proto) {
  const auto outline = store.Outline(job.name, filter.needs_hosts());
  if (refusals != nullptr) proto->set_refused_samples(refusals->SamplesOf(job.name));
  if (absl::IsNotFound(outline.status())) {
    proto->set_name(job.name);
    proto->set_state(v1::JOB_STATE_SILENT);
    return refusals != nullptr && refusals->IsRecent(job.name, now) &&
           filter.WantsOutline(storage::JobOutline()) && filter.WantsState(proto->state());
  }
  if (!outline.ok()) return outline.status();
  if (!filter.WantsOutline(*outline)) return false;
  TACHO_ASSIGN_OR_RETURN(const auto state, StateOfJob(store, job, now));
  if (!filter.WantsState(state)) return false;
  ToProto(job, *outline, state, proto);
  return true;
}

}  // namespace

void KeepOwnParts(const storage::Store& store, const OwnPart& own,
                  std::vector<storage::JobSummary>* jobs) {
  if (own == nullptr) return;
  std::erase_if(*jobs, [&](storage::JobSummary& job) {
    const auto part = own(job.name);
    if (!part.has_value()) return false;
    auto detail = store.FindJob(job.name);
    if (!detail.has_value()) return true;  // It has expired meanwhile.
    KeepPart(*part, &*detail);
    job = std::move(detail->summary);
    return job.series == 0;
  });
}

absl::Status ListJobs(const storage::Store& store, const v1::ListJobsRequest& request,
                      absl::Time now, const QueryControl& control, v1::ListJobsResponse* response,
                      const security::Rights& rights, const limits::JobRefusals* refusals,
                      const OwnPart& own) {
  if (request.page_size() > kMaxPageSize) {
    return errors::InvalidFieldError("page_size", absl::StrCat("is at most ", kMaxPageSize));
  }
  std::optional<JobPosition> after;
  if (!request.page_token().empty()) {
    TACHO_ASSIGN_OR_RETURN(JobPosition position, ReadPageToken(request.page_token()));
    after = std::move(position);
  }
  TACHO_ASSIGN_OR_RETURN(const auto filter, JobFilter::Create(request));
  TACHO_ASSIGN_OR_RETURN(auto jobs, WantedJobs(store, request, filter, now, rights, refusals, own));

  const int64_t active_since_ns =
      after.has_value() ? after->active_since_ns : absl::ToUnixNanos(now - kActiveFor);
  std::vector<std::pair<JobPosition, const storage::JobSummary*>> listing;
  for (const storage::JobSummary& job : jobs) {
    JobPosition position = JobPosition::Of(active_since_ns, job.extent.last_time_ns, job.name);
    if (after.has_value() && !IsBefore(*after, position)) continue;
    listing.emplace_back(std::move(position), &job);
  }
  std::sort(listing.begin(), listing.end(),
            [](const auto& a, const auto& b) { return IsBefore(a.first, b.first); });
  const int page =
      static_cast<int>(request.page_size() == 0 ? kDefaultPageSize : request.page_size());
  const JobPosition* last = nullptr;  // The page's last job.
  for (const auto& [position, job] : listing) {
    TACHO_RETURN_IF_ERROR(control.Check());
    v1::Job proto;
    TACHO_ASSIGN_OR_RETURN(const auto taken, TakeJob(store, filter, *job, now, refusals, &proto));
    if (!taken) continue;
    if (response->jobs_size() == page) {
      response->set_next_page_token(PageTokenOf(*last));
      return absl::OkStatus();
    }
    *response->add_jobs() = std::move(proto);
    last = &position;
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::query
