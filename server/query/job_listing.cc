#include "server/query/job_listing.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/grpc_status.h"
#include "server/query/selection.h"
#include "storage/matcher.h"

namespace tacho::server {
namespace {

constexpr absl::Duration kActiveFor = absl::Minutes(5);

// Where a page ends. In the token: active_since,seen,name.
struct Position {
  int64_t active_since_ns = 0;  // Of the first page; all later activity counts as this.
  int64_t seen_ns = INT64_MAX;
  std::string name;
};

std::string Encode(const Position& position) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(position.active_since_ns, ",", position.seen_ns, ",", position.name));
}

absl::StatusOr<Position> Decode(absl::string_view token) {
  Position position;
  std::string text;
  if (absl::WebSafeBase64Unescape(token, &text)) {
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(',', 2));
    if (parts.size() == 3 && absl::SimpleAtoi(parts[0], &position.active_since_ns) &&
        absl::SimpleAtoi(parts[1], &position.seen_ns)) {
      position.name = parts[2];
      return position;
    }
  }
  return InvalidFieldError("page_token", "is not one of a previous answer");
}

void ToProto(const storage::JobSummary& job, v1::Job* proto) {
  proto->set_name(job.name);
  if (job.extent.first_time_ns <= job.extent.last_time_ns) {
    proto->set_first_seen_unix_ns(job.extent.first_time_ns);
    proto->set_last_seen_unix_ns(job.extent.last_time_ns);
  }
  if (job.extent.last_step.has_value()) proto->set_last_step(*job.extent.last_step);
  proto->set_attempts(job.attempts);
  proto->set_tasks(job.tasks);
  proto->set_hosts(job.hosts);
  proto->set_series(job.series);
}

void ToProto(const storage::AttemptInfo& attempt, v1::Attempt* proto) {
  proto->set_attempt(attempt.attempt);
  if (attempt.extent.first_time_ns <= attempt.extent.last_time_ns) {
    proto->set_first_seen_unix_ns(attempt.extent.first_time_ns);
    proto->set_last_seen_unix_ns(attempt.extent.last_time_ns);
  }
  if (attempt.extent.first_step.has_value()) proto->set_first_step(*attempt.extent.first_step);
  if (attempt.extent.last_step.has_value()) proto->set_last_step(*attempt.extent.last_step);
  proto->mutable_attributes()->insert(attempt.attributes.begin(), attempt.attributes.end());
}

void ToProto(const storage::TaskInfo& task, v1::Task* proto) {
  if (task.task.has_value()) proto->set_task(*task.task);
  proto->set_host(task.host);
  proto->set_attempt(task.attempt);
  if (task.extent.first_time_ns <= task.extent.last_time_ns) {
    proto->set_last_seen_unix_ns(task.extent.last_time_ns);
  }
  if (task.extent.last_step.has_value()) proto->set_last_step(*task.extent.last_step);
  proto->set_series(task.series);
}

absl::StatusOr<std::vector<storage::JobSummary>> WantedJobs(const storage::Store& store,
                                                            const v1::ListJobsRequest& request,
                                                            absl::Time now, const Rights& rights) {
  std::vector<storage::JobSummary> jobs = store.Jobs();
  std::erase_if(jobs, [&](const auto& job) { return !rights.MayTouch(job.name); });
  if (request.seen_within_ns() < 0) return InvalidFieldError("seen_within_ns", "is negative");
  if (request.seen_within_ns() > 0) {
    const int64_t since = absl::ToUnixNanos(now - absl::Nanoseconds(request.seen_within_ns()));
    std::erase_if(jobs, [&](const auto& job) { return job.extent.last_time_ns < since; });
  }
  if (!request.name_pattern().empty()) {
    auto pattern =
        storage::Matcher::Create("job", storage::Matcher::Op::kMatches, request.name_pattern());
    if (!pattern.ok()) return InvalidFieldError("name_pattern", pattern.status().message());
    std::erase_if(jobs, [&](const auto& job) { return !pattern->MatchesValue(job.name); });
  }
  return jobs;
}

// Orders jobs as the header says. Later activity than the position's is of no account.
class ListingOrder {
 public:
  explicit ListingOrder(int64_t active_since_ns) : active_since_ns_(active_since_ns) {}

  Position Of(const storage::JobSummary& job) const {
    return {active_since_ns_, std::min(job.extent.last_time_ns, active_since_ns_), job.name};
  }
  static bool Before(const Position& a, const Position& b) {
    return std::tie(b.seen_ns, a.name) < std::tie(a.seen_ns, b.name);
  }

 private:
  const int64_t active_since_ns_;
};

}  // namespace

absl::Status ListJobs(const storage::Store& store, const v1::ListJobsRequest& request,
                      absl::Time now, v1::ListJobsResponse* response, const Rights& rights) {
  if (request.page_size() > kMaxPageSize) {
    return InvalidFieldError("page_size", absl::StrCat("is at most ", kMaxPageSize));
  }
  std::optional<Position> after;
  if (!request.page_token().empty()) {
    absl::StatusOr<Position> position = Decode(request.page_token());
    if (!position.ok()) return position.status();
    after = *std::move(position);
  }
  auto jobs = WantedJobs(store, request, now, rights);
  if (!jobs.ok()) return jobs.status();

  const ListingOrder order(after.has_value() ? after->active_since_ns
                                             : absl::ToUnixNanos(now - kActiveFor));
  std::vector<std::pair<Position, const storage::JobSummary*>> listing;
  for (const storage::JobSummary& job : *jobs) {
    Position position = order.Of(job);
    if (after.has_value() && !ListingOrder::Before(*after, position)) continue;
    listing.emplace_back(std::move(position), &job);
  }
  std::sort(listing.begin(), listing.end(),
            [](const auto& a, const auto& b) { return ListingOrder::Before(a.first, b.first); });
  const size_t page = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
  if (listing.size() > page) {
    response->set_next_page_token(Encode(listing[page - 1].first));
    listing.resize(page);
  }
  for (const auto& entry : listing) ToProto(*entry.second, response->add_jobs());
  return absl::OkStatus();
}

absl::Status GetJob(const storage::Store& store, const v1::GetJobRequest& request,
                    v1::GetJobResponse* response) {
  if (request.job().empty()) return InvalidFieldError("job", "is required");
  const std::optional<storage::JobDetail> detail = store.FindJob(request.job());
  if (!detail.has_value()) return NoSuchJob(store, request.job());
  ToProto(detail->summary, response->mutable_job());
  for (const auto& attempt : detail->attempts) ToProto(attempt, response->add_attempts());
  for (const auto& task : detail->tasks) ToProto(task, response->add_tasks());
  for (const auto& metric : detail->metrics) ToProto(metric, response->add_metrics());
  return absl::OkStatus();
}

}  // namespace tacho::server
