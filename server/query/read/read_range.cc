#include "server/query/read/read_range.h"

#include "server/errors/grpc_status.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {

absl::StatusOr<storage::ReadOptions> MakeReadOptions(const v1::TimeRange* time,
                                                     const v1::StepRange* steps) {
  storage::ReadOptions read;
  if (time != nullptr) {
    absl::Status status = SetTimeRange(*time, &read.begin_ns, &read.end_ns);
    if (!status.ok()) return status;
  }
  if (steps == nullptr) return read;
  if (steps->has_begin() && steps->has_end() && steps->begin() > steps->end()) {
    return errors::InvalidFieldError("steps.end", "must not be below steps.begin");
  }
  // Rows without a step are in no range of them.
  read.first_step = steps->has_begin() ? steps->begin() : storage::kNoStep + 1;
  if (steps->has_end()) read.last_step = steps->end();
  return read;
}

}  // namespace tacho::server::query
