#include "server/query/compare/compare_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

absl::StatusOr<ComparedSelection> MakeSubject(const v1::CompareRequest& request,
                                              const v1::Subject& subject) {
  if (subject.job().empty()) return errors::InvalidFieldError("subjects.job", "is required");
  v1::Selector selector;
  selector.set_job(subject.job());
  *selector.mutable_metrics() = request.metrics();
  *selector.mutable_matchers() = request.matchers();
  auto selection = MakeSelection(selector);
  if (!selection.ok()) return selection.status();
  ComparedSelection made;
  made.selection = *std::move(selection);
  if (subject.has_attempt()) made.attempt = subject.attempt();
  if (subject.attempts() != v1::ATTEMPTS_UNSPECIFIED) made.attempts = subject.attempts();
  return made;
}

absl::StatusOr<FoldOptions> MakeFold(const v1::Aggregation& aggregation) {
  FoldOptions fold;
  fold.function = v1::AGGREGATE_FUNCTION_AVG;
  if (aggregation.function() != v1::AGGREGATE_FUNCTION_UNSPECIFIED) {
    fold.function = aggregation.function();
  }
  if (!v1::AggregateFunction_IsValid(fold.function)) {
    return errors::InvalidFieldError("aggregation.function",
                                     "is not a function that is known here");
  }
  if (aggregation.by_size() > 0) {
    return errors::InvalidFieldError(
        "aggregation.by", "is not for comparing: add matchers to compare a part of a job");
  }
  fold.quantile = aggregation.quantile();
  if (fold.function != v1::AGGREGATE_FUNCTION_QUANTILE && fold.quantile != 0) {
    return errors::InvalidFieldError("aggregation.quantile",
                                     "goes with AGGREGATE_FUNCTION_QUANTILE only");
  }
  if (!(fold.quantile >= 0 && fold.quantile <= 1)) {
    return errors::InvalidFieldError("aggregation.quantile", "must be from 0 to 1");
  }
  return fold;
}

absl::Status SetPlaces(const v1::CompareRequest& request, ComparePlan* plan) {
  if (!v1::Alignment_IsValid(request.alignment())) {
    return errors::InvalidFieldError("alignment", "must be ALIGNMENT_STEP or ALIGNMENT_ELAPSED");
  }
  plan->by_step = request.alignment() != v1::ALIGNMENT_ELAPSED;
  if (request.max_points() > kMaxComparedPoints) {
    return errors::InvalidFieldError("max_points", absl::StrCat("is at most ", kMaxComparedPoints));
  }
  if (request.max_points() > 0) plan->max_points = request.max_points();
  if (request.has_steps() && !plan->by_step) {
    return errors::InvalidFieldError("steps", "is for ALIGNMENT_STEP only");
  }
  auto read = MakeReadOptions(nullptr, request.has_steps() ? &request.steps() : nullptr);
  if (!read.ok()) return read.status();
  plan->read = *read;
  // Rows without a step have no place among steps.
  if (plan->by_step && !plan->read.first_step) plan->read.first_step = storage::kNoStep + 1;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ComparePlan> MakeComparePlan(const v1::CompareRequest& request) {
  if (request.subjects_size() < 1 || request.subjects_size() > kMaxSubjects) {
    return errors::InvalidFieldError(
        "subjects",
        absl::StrCat("1 to ", kMaxSubjects, " are compared, not ", request.subjects_size()));
  }
  for (const v1::Matcher& matcher : request.matchers()) {
    if (matcher.label() == "attempt") {
      return errors::InvalidFieldError("matchers.label", "attempts are chosen in subjects.attempt");
    }
  }
  ComparePlan plan;
  TACHO_RETURN_IF_ERROR(SetPlaces(request, &plan));
  auto fold = MakeFold(request.aggregation());
  if (!fold.ok()) return fold.status();
  plan.fold = *fold;
  auto values =
      ComparedValues::Of(request.compared_values(), v1::ComparedValue_IsValid, "compared_values");
  if (!values.ok()) return values.status();
  plan.values = *values;
  plan.metrics.assign(request.metrics().begin(), request.metrics().end());
  for (const v1::Subject& subject : request.subjects()) {
    TACHO_ASSIGN_OR_RETURN(auto made, MakeSubject(request, subject));
    plan.subjects.push_back(std::move(made));
  }
  return plan;
}

}  // namespace tacho::server::query
