// Filters by what memory knows first, sorts, and looks up the rest only for the jobs of the page,
// because states, hosts and attributes may need the disk.
#include "server/query/lists/job_listing.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/lists/job_detail.h"
#include "server/query/read/job_marks.h"
#include "server/query/read/job_state.h"
#include "server/query/read/selection.h"
#include "storage/index/matcher.h"

namespace tacho::server::query {
namespace {

// Where a page ends. In the token: active_since,seen,name.
struct Position {
  int64_t active_since_ns = 0;  // Set by the first page; all later activity counts as this.
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
  return errors::InvalidFieldError("page_token", "is not one of a previous answer");
}

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
                                                            absl::Time now,
                                                            const security::Rights& rights,
                                                            const limits::JobRefusals* refusals) {
  std::vector<storage::JobSummary> jobs = store.Jobs();
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
  if (!request.name_pattern().empty()) {
    auto pattern =
        storage::Matcher::Create("job", storage::Matcher::Op::kMatches, request.name_pattern());
    if (!pattern.ok()) return errors::InvalidFieldError("name_pattern", pattern.status().message());
    std::erase_if(jobs, [&](const auto& job) { return !pattern->MatchesValue(job.name); });
  }
  return jobs;
}

// The conditions that do, and what the answer shows besides the summary.
class JobConditions {
 public:
  static absl::StatusOr<JobConditions> Create(const v1::ListJobsRequest& request,
                                              const limits::JobRefusals* refusals) {
    JobConditions made;
    made.refusals_ = refusals;
    if (request.matchers_size() > kMaxSelectorMatchers) {
      return errors::InvalidFieldError(
          "matchers", absl::StrCat("at most ", kMaxSelectorMatchers, " conditions"));
    }
    for (const v1::Matcher& proto : request.matchers()) {
      TACHO_ASSIGN_OR_RETURN(auto matcher, MakeMatcher(proto, "matchers"));
      (matcher.label() == "host" ? made.hosts_ : made.attributes_).push_back(std::move(matcher));
    }
    if (request.tags_size() > kMaxSelectorMatchers) {
      return errors::InvalidFieldError("tags", absl::StrCat("at most ", kMaxSelectorMatchers));
    }
    for (const std::string& tag : request.tags()) {
      if (tag.empty()) return errors::InvalidFieldError("tags", "must not be empty");
      made.tags_.push_back(absl::StrCat(kTagPrefix, tag));
    }
    made.group_ = request.group();
    for (const int state : request.states()) {
      if (!v1::JobState_IsValid(state) || state == v1::JOB_STATE_UNSPECIFIED ||
          state == v1::JOB_STATE_REPLACED) {
        return errors::InvalidFieldError(
            "states", "a job is JOB_STATE_RUNNING, JOB_STATE_SILENT or JOB_STATE_ENDED");
      }
      made.states_.push_back(static_cast<v1::JobState>(state));
    }
    return made;
  }

  // Fills *proto; false if a condition does not hold. None holds for a job that has expired, unless
  // something of it was refused lately.
  absl::StatusOr<bool> Take(const storage::Store& store, const storage::JobSummary& job,
                            absl::Time now, v1::Job* proto) const {
    const auto outline = store.Outline(job.name, !hosts_.empty());
    if (refusals_ != nullptr) proto->set_refused_samples(refusals_->SamplesOf(job.name));
    if (absl::IsNotFound(outline.status())) {
      return refusals_ != nullptr && refusals_->IsRecent(job.name, now) &&
             TakeRefused(job.name, proto);
    }
    if (!outline.ok()) return outline.status();
    if (!Hold(*outline)) return false;
    TACHO_ASSIGN_OR_RETURN(const auto state, StateOfJob(store, job, now));
    if (!states_.empty() && std::find(states_.begin(), states_.end(), state) == states_.end()) {
      return false;
    }
    ToProto(job, proto);
    proto->set_metrics(static_cast<uint32_t>(outline->metrics));
    proto->set_state(state);
    v1::JobMarks marks = MarksOf(outline->merged_attributes);
    if (HasMarks(marks)) *proto->mutable_marks() = std::move(marks);
    return true;
  }

 private:
  bool Hold(const storage::JobOutline& outline) const {
    if (!HasWantedMarks(outline.merged_attributes)) return false;
    for (const storage::Matcher& matcher : attributes_) {
      const AttributeMap& attributes =
          IsMark(matcher.label()) ? outline.merged_attributes : outline.attributes;
      const auto found = attributes.find(matcher.label());
      const bool known = found != attributes.end();
      if (!matcher.MatchesValue(known ? found->second : "")) return false;
    }
    return std::all_of(hosts_.begin(), hosts_.end(), [&](const storage::Matcher& matcher) {
      return std::any_of(outline.hosts.begin(), outline.hosts.end(),
                         [&](const std::string& host) { return matcher.MatchesValue(host); });
    });
  }

  bool HasWantedMarks(const AttributeMap& merged) const {
    if (!group_.empty()) {
      const auto found = merged.find(kGroupAttribute);
      if (found == merged.end() || found->second != group_) return false;
    }
    return std::all_of(tags_.begin(), tags_.end(),
                       [&](const std::string& tag) { return merged.contains(tag); });
  }

  // A job that is only known for what was refused of it.
  bool TakeRefused(const std::string& job, v1::Job* proto) const {
    constexpr v1::JobState kState = v1::JOB_STATE_SILENT;
    if (!Hold(storage::JobOutline())) return false;
    if (!states_.empty() && std::find(states_.begin(), states_.end(), kState) == states_.end()) {
      return false;
    }
    proto->set_name(job);
    proto->set_state(kState);
    return true;
  }

  const limits::JobRefusals* refusals_ = nullptr;
  std::vector<storage::Matcher> hosts_;
  std::vector<storage::Matcher> attributes_;
  std::vector<std::string> tags_;  // As attributes.
  std::string group_;              // Empty: any.
  std::vector<v1::JobState> states_;
};

// Orders jobs as the header says. Activity later than the position's does not count.
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
                      absl::Time now, const QueryControl& control, v1::ListJobsResponse* response,
                      const security::Rights& rights, const limits::JobRefusals* refusals) {
  if (request.page_size() > kMaxPageSize) {
    return errors::InvalidFieldError("page_size", absl::StrCat("is at most ", kMaxPageSize));
  }
  std::optional<Position> after;
  if (!request.page_token().empty()) {
    TACHO_ASSIGN_OR_RETURN(Position position, Decode(request.page_token()));
    after = std::move(position);
  }
  TACHO_ASSIGN_OR_RETURN(const auto conditions, JobConditions::Create(request, refusals));
  TACHO_ASSIGN_OR_RETURN(auto jobs, WantedJobs(store, request, now, rights, refusals));

  const ListingOrder order(after.has_value() ? after->active_since_ns
                                             : absl::ToUnixNanos(now - kActiveFor));
  std::vector<std::pair<Position, const storage::JobSummary*>> listing;
  for (const storage::JobSummary& job : jobs) {
    Position position = order.Of(job);
    if (after.has_value() && !ListingOrder::Before(*after, position)) continue;
    listing.emplace_back(std::move(position), &job);
  }
  std::sort(listing.begin(), listing.end(),
            [](const auto& a, const auto& b) { return ListingOrder::Before(a.first, b.first); });
  const int page =
      static_cast<int>(request.page_size() == 0 ? kDefaultPageSize : request.page_size());
  const Position* last = nullptr;  // The page's last job.
  for (const auto& [position, job] : listing) {
    TACHO_RETURN_IF_ERROR(control.Check());
    v1::Job proto;
    TACHO_ASSIGN_OR_RETURN(const auto taken, conditions.Take(store, *job, now, &proto));
    if (!taken) continue;
    if (response->jobs_size() == page) {
      response->set_next_page_token(Encode(*last));
      return absl::OkStatus();
    }
    *response->add_jobs() = std::move(proto);
    last = &position;
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::query
