// What this collector says of a job that it keeps to another member of the cluster, which compares
// it with others.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/query/read/message_packing.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// The caller must have the right to read the job. `max_series` is this collector's own limit.
//   INVALID_ARGUMENT  the text names the field.
//   others            as ComparedSubject, control.Check() and `send`.
absl::Status AnswerSubject(const storage::Store& store, const v1::CompareSubjectRequest& request,
                           uint64_t max_series, const QueryControl& control,
                           Send<v1::CompareSubjectResponse> send);

}  // namespace tacho::server::query
