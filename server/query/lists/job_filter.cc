#include "server/query/lists/job_filter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/job_marks.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {

template <typename Request>
absl::StatusOr<JobFilter> JobFilter::Create(const Request& request) {
  JobFilter made;
  if (!request.name_pattern().empty()) {
    auto pattern =
        storage::Matcher::Create("job", storage::Matcher::Op::kMatches, request.name_pattern());
    if (!pattern.ok()) return errors::InvalidFieldError("name_pattern", pattern.status().message());
    made.name_ = *std::move(pattern);
  }
  if (request.matchers_size() > kMaxSelectorMatchers) {
    return errors::InvalidFieldError("matchers",
                                     absl::StrCat("at most ", kMaxSelectorMatchers, " conditions"));
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

template absl::StatusOr<JobFilter> JobFilter::Create(const v1::ListJobsRequest&);
template absl::StatusOr<JobFilter> JobFilter::Create(const v1::FleetRequest&);

bool JobFilter::WantsName(absl::string_view name) const {
  return !name_.has_value() || name_->MatchesValue(name);
}

bool JobFilter::WantsState(v1::JobState state) const {
  return states_.empty() || std::find(states_.begin(), states_.end(), state) != states_.end();
}

bool JobFilter::WantsOutline(const storage::JobOutline& outline) const {
  if (!HasWantedMarks(outline)) return false;
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

bool JobFilter::HasWantedMarks(const storage::JobOutline& outline) const {
  const AttributeMap& merged = outline.merged_attributes;
  if (!group_.empty()) {
    const auto found = merged.find(kGroupAttribute);
    if (found == merged.end() || found->second != group_) return false;
  }
  return std::all_of(tags_.begin(), tags_.end(),
                     [&](const std::string& tag) { return merged.contains(tag); });
}

}  // namespace tacho::server::query
