// The conditions on time and steps that requests have in common.
#pragma once

#include "absl/status/statusor.h"
#include "storage/model/series_reader.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// In storage's form; null is no condition.
//   INVALID_ARGUMENT  an end lies before its beginning; the text names the field.
absl::StatusOr<storage::ReadOptions> MakeReadOptions(const v1::TimeRange* time,
                                                     const v1::StepRange* steps);

// Of a request that has `time` and `steps`.
template <typename Request>
absl::StatusOr<storage::ReadOptions> ReadOptionsOf(const Request& request) {
  return MakeReadOptions(request.has_time() ? &request.time() : nullptr,
                         request.has_steps() ? &request.steps() : nullptr);
}

}  // namespace tacho::server::query
