// The points of a scalar tag.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/read/query_control.h"
#include "server/tensorboard/experiment.h"
#include "server/tensorboard/sampler.h"
#include "server/tensorboard/tags.h"
#include "storage/model/series_reader.h"

namespace tacho::server::tb {

// TensorBoard knows points by their step. Rows without one get the whole seconds since the run's
// first row: these stay the same while the run goes on and old days are dropped, and mean the same
// for all tags of the run, as a count of rows would not.
int64_t StepOfTime(const Run& run, int64_t time_ns);

// Samples within this time share a mean without steps, because hosts do not sample at one moment.
inline constexpr int64_t kMeanWindowSeconds = 60;

// At most max_points points, chosen as sampler.h says.
//
//   one series      every sample. Where only some rows have a step, those without have that of the
//                   row before them in time (0 before the first).
//   several         at each step the mean of their values; each series takes part with the newest
//                   sample that it has there. Without steps: for each minute since the run began,
//                   at its first second, the mean of the series' means. NaN takes part as IEEE
//                   arithmetic has it.
//
// `view` sees the tag's series.
//   RESOURCE_EXHAUSTED  a mean has more steps than across.h holds, or one of its series has more
//                       samples than step_order.h sorts; the text names the tag.
//   others              as QueryControl::Check() and as storage has it.
absl::StatusOr<std::vector<ScalarPoint>> ReadScalarPoints(storage::ReadView* view, const Run& run,
                                                          const ScalarTag& tag, size_t max_points,
                                                          const query::QueryControl& control);

}  // namespace tacho::server::tb
