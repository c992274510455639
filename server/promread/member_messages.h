// What members of a cluster ask each other about series, as messages. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "server/promread/explore_answer.h"
#include "server/promread/read_request.h"
#include "server/promread/series_labels.h"
#include "tacho/v1/member_reads.pb.h"

namespace tacho::server::promread {

//   INVALID_ARGUMENT (MALFORMED)  a matcher is no UTF-8, as no stored label is.
absl::StatusOr<v1::MemberSelection> ToSelection(const ReadQuery& query);
absl::StatusOr<v1::MemberListRequest> ToListRequest(const ListQuestion& question);

// Messages of other members are trusted no more than those of tools.
//   INVALID_ARGUMENT              a matcher has no operator, or its expression does not compile; or
//                                 there is no such kind of list.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  more selectors or matchers than there may be.
absl::StatusOr<ReadQuery> FromSelection(const v1::MemberSelection& selection);
absl::StatusOr<ListQuestion> FromListRequest(const v1::MemberListRequest& request);

LabelList LabelsOf(const v1::MemberSeries& series);

}  // namespace tacho::server::promread
