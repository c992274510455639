#include "server/query/lists/conditions_query.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

v1::ConditionStatus StatusToProto(conditions::ConditionStatus status) {
  switch (status) {
    case conditions::ConditionStatus::kTrue:
      return v1::CONDITION_STATUS_TRUE;
    case conditions::ConditionStatus::kFalse:
      return v1::CONDITION_STATUS_FALSE;
    case conditions::ConditionStatus::kUnknown:
      return v1::CONDITION_STATUS_UNKNOWN;
  }
  return v1::CONDITION_STATUS_UNKNOWN;
}

v1::ConditionSeverity SeverityToProto(conditions::Severity severity) {
  switch (severity) {
    case conditions::Severity::kInfo:
      return v1::CONDITION_SEVERITY_INFO;
    case conditions::Severity::kWarning:
      return v1::CONDITION_SEVERITY_WARNING;
    case conditions::Severity::kCritical:
      return v1::CONDITION_SEVERITY_CRITICAL;
  }
  return v1::CONDITION_SEVERITY_UNSPECIFIED;
}

void FillCulprit(const conditions::Culprit& from, v1::ConditionCulprit* to) {
  if (from.task) to->set_task(*from.task);
  to->set_host(from.host);
  to->set_chip(from.chip);
  to->set_metric(from.metric);
  if (from.step) to->set_step(*from.step);
  to->set_score(from.score);
}

}  // namespace

template <typename Request>
absl::StatusOr<ConditionFilter> ConditionFilter::Create(const Request& request) {
  ConditionFilter filter;
  filter.job_ = request.job();
  filter.conditions_.insert(request.conditions().begin(), request.conditions().end());
  if (!request.job_pattern().empty()) {
    if (!request.job().empty()) {
      return absl::InvalidArgumentError("job_pattern: must be empty where job is not");
    }
    auto pattern = std::make_shared<RE2>(request.job_pattern(), RE2::Quiet);
    if (!pattern->ok()) {
      return absl::InvalidArgumentError(absl::StrCat("job_pattern: ", pattern->error()));
    }
    filter.pattern_ = std::move(pattern);
  }
  if constexpr (std::is_same_v<Request, v1::ConditionsRequest>) {
    for (const int status : request.statuses()) {
      if (status == v1::CONDITION_STATUS_UNSPECIFIED || !v1::ConditionStatus_IsValid(status)) {
        return absl::InvalidArgumentError(absl::StrCat("statuses: unknown status ", status));
      }
      filter.statuses_.insert(status);
    }
  }
  return filter;
}

template absl::StatusOr<ConditionFilter> ConditionFilter::Create(const v1::ConditionsRequest&);
template absl::StatusOr<ConditionFilter> ConditionFilter::Create(const v1::WatchConditionsRequest&);

bool ConditionFilter::WantsJob(const std::string& job) const {
  if (!job_.empty() && job != job_) return false;
  return pattern_ == nullptr || RE2::FullMatch(job, *pattern_);
}

bool ConditionFilter::Wants(const conditions::JudgedCondition& condition) const {
  if (!conditions_.empty() && !conditions_.contains(condition.name)) return false;
  return statuses_.empty() || statuses_.contains(StatusToProto(condition.status));
}

void FillCondition(const conditions::JudgedCondition& from, v1::Condition* to) {
  to->set_job(from.job);
  to->set_attempt(from.attempt);
  to->set_condition(from.name);
  to->set_status(StatusToProto(from.status));
  const conditions::Finding& finding = from.finding;
  to->set_reason(finding.reason);
  to->set_message(finding.message);
  to->set_since_unix_ns(from.since_ns);
  to->set_changed_unix_ns(from.changed_ns);
  to->set_judged_unix_ns(from.judged_ns);
  if (from.status != conditions::ConditionStatus::kTrue) return;
  to->set_severity(SeverityToProto(finding.severity));
  if (finding.step) to->set_step(*finding.step);
  for (const conditions::Figure& figure : finding.figures) {
    v1::ConditionFigure* const added = to->add_figures();
    added->set_name(figure.name);
    added->set_value(figure.value);
    added->set_unit(figure.unit);
  }
  for (const conditions::Culprit& culprit : finding.culprits)
    FillCulprit(culprit, to->add_culprits());
}

namespace {

void FillProfile(const std::string& job, const conditions::JobProfile& from, v1::JobProfile* to) {
  to->set_job(job);
  to->set_profile(std::string(conditions::ProfileName(from.profile)));
  to->set_automatic(from.automatic);
  to->set_reason(from.reason);
  to->set_since_unix_ns(from.since_ns);
}

}  // namespace

absl::Status ListConditions(const storage::Store& store, const conditions::ConditionBoard& board,
                            const v1::ConditionsRequest& request, const security::Rights& rights,
                            v1::ConditionsResponse* response) {
  TACHO_ASSIGN_OR_RETURN(const auto filter, ConditionFilter::Create(request));
  conditions::JobConditions found;
  if (request.job().empty()) {
    found = board.All(
        [&](const std::string& job) { return filter.WantsJob(job) && rights.MayTouch(job); });
  } else {
    found = board.Of(request.job());
    if (found.empty() && absl::IsNotFound(store.Outline(request.job(), false).status())) {
      return NoSuchJob(store, request.job());
    }
  }
  for (const conditions::JudgedConditionPtr& condition : found) {
    if (filter.Wants(*condition)) FillCondition(*condition, response->add_conditions());
  }
  const auto profiles = board.Profiles(
      [&](const std::string& job) { return filter.WantsJob(job) && rights.MayTouch(job); });
  for (const auto& [job, profile] : profiles) {
    FillProfile(job, profile, response->add_profiles());
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::query
