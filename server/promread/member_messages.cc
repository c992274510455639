#include "server/promread/member_messages.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/selection.h"

namespace tacho::server::promread {
namespace {

v1::Matcher::Op OpOf(storage::Matcher::Op op) {
  switch (op) {
    case storage::Matcher::Op::kEqual:
      return v1::Matcher::OP_EQUAL;
    case storage::Matcher::Op::kNotEqual:
      return v1::Matcher::OP_NOT_EQUAL;
    case storage::Matcher::Op::kMatches:
      return v1::Matcher::OP_MATCHES;
    case storage::Matcher::Op::kNotMatches:
      break;
  }
  return v1::Matcher::OP_NOT_MATCHES;
}

v1::MemberListRequest::Kind ToKind(ListKind kind) {
  switch (kind) {
    case ListKind::kLabelNames:
      return v1::MemberListRequest::KIND_LABEL_NAMES;
    case ListKind::kLabelValues:
      return v1::MemberListRequest::KIND_LABEL_VALUES;
    case ListKind::kSeries:
      return v1::MemberListRequest::KIND_SERIES;
    case ListKind::kMetadata:
      break;
  }
  return v1::MemberListRequest::KIND_METADATA;
}

absl::StatusOr<ListKind> FromKind(v1::MemberListRequest::Kind kind) {
  switch (kind) {
    case v1::MemberListRequest::KIND_LABEL_NAMES:
      return ListKind::kLabelNames;
    case v1::MemberListRequest::KIND_LABEL_VALUES:
      return ListKind::kLabelValues;
    case v1::MemberListRequest::KIND_SERIES:
      return ListKind::kSeries;
    case v1::MemberListRequest::KIND_METADATA:
      return ListKind::kMetadata;
    default:
      return errors::InvalidFieldError("kind", absl::StrCat("there is no list ", kind));
  }
}

}  // namespace

absl::StatusOr<v1::MemberSelection> ToSelection(const ReadQuery& query) {
  v1::MemberSelection selection;
  selection.set_begin_ms(query.begin_ms);
  selection.set_end_ms(query.end_ms);
  for (const storage::Matcher& matcher : query.matchers) {
    if (!IsUtf8(matcher.label()) || !IsUtf8(matcher.value())) {
      return errors::ErrorOf(errors::Failure::kMalformed,
                             "the name or the value of a matcher is no UTF-8");
    }
    v1::Matcher* const to = selection.add_matchers();
    to->set_label(matcher.label());
    to->set_op(OpOf(matcher.op()));
    to->set_value(matcher.value());
  }
  return selection;
}

absl::StatusOr<ReadQuery> FromSelection(const v1::MemberSelection& selection) {
  if (selection.matchers_size() > kMaxMatchers) {
    return errors::ErrorOf(errors::Failure::kTooLarge,
                           absl::StrCat("a query may have ", kMaxMatchers, " matchers"));
  }
  ReadQuery query = {
      .begin_ms = selection.begin_ms(), .end_ms = selection.end_ms(), .matchers = {}};
  for (const v1::Matcher& proto : selection.matchers()) {
    TACHO_ASSIGN_OR_RETURN(storage::Matcher matcher,
                           query::MakeMatcher(proto, "selection.matchers"));
    query.matchers.push_back(std::move(matcher));
  }
  return query;
}

absl::StatusOr<v1::MemberListRequest> ToListRequest(const ListQuestion& question) {
  v1::MemberListRequest request;
  request.set_kind(ToKind(question.kind));
  request.set_label(question.label);
  for (const ReadQuery& query : question.request.selectors) {
    TACHO_ASSIGN_OR_RETURN(*request.add_selectors(), ToSelection(query));
  }
  TACHO_ASSIGN_OR_RETURN(*request.mutable_everything(), ToSelection(question.request.everything));
  request.set_limit(question.request.limit);
  request.set_metric(question.request.metric);
  return request;
}

absl::StatusOr<ListQuestion> FromListRequest(const v1::MemberListRequest& request) {
  if (request.selectors_size() > kMaxQueries) {
    return errors::ErrorOf(errors::Failure::kTooLarge,
                           absl::StrCat("a list may have ", kMaxQueries, " selectors"));
  }
  ListQuestion question;
  TACHO_ASSIGN_OR_RETURN(question.kind, FromKind(request.kind()));
  question.label = request.label();
  for (const v1::MemberSelection& selection : request.selectors()) {
    TACHO_ASSIGN_OR_RETURN(ReadQuery query, FromSelection(selection));
    question.request.selectors.push_back(std::move(query));
  }
  question.request.everything.begin_ms = request.everything().begin_ms();
  question.request.everything.end_ms = request.everything().end_ms();
  question.request.limit = request.limit();
  question.request.metric = request.metric();
  return question;
}

LabelList LabelsOf(const v1::MemberSeries& series) {
  LabelList labels;
  labels.reserve(static_cast<size_t>(series.labels_size()));
  for (const v1::Label& label : series.labels()) labels.emplace_back(label.name(), label.value());
  return labels;
}

}  // namespace tacho::server::promread
