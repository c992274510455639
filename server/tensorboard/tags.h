// Which scalar tags a run has, and what series each stands for.
//
//   tag                     value at a step
//   metric                  the only series without labels; the mean if there are several (tasks,
//                           hosts)
//   metric{chip=0,kind=x}   the same for the series with these labels
//   …/task3, …/host-7       one task, or one host where there is no task; only beside a mean
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/read/query_control.h"
#include "server/tensorboard/experiment.h"
#include "storage/store.h"

namespace tacho::server::tb {

// A mean of more series has no tags for each of them.
inline constexpr size_t kMaxTagsBesideMean = 64;

struct ScalarTag {
  std::string name;
  std::vector<storage::SeriesPtr> series;  // Those with a sample in the run; of one metric.
  bool by_step = false;  // Whether any row has a step; see StepOfTime() in scalar_points.h else.
  // The newest sample's. kNoStep if it has none.
  int64_t last_step = storage::kNoStep;
  int64_t last_time_ns = 0;
};

struct TagsOfRun {
  std::vector<ScalarTag> tags;  // In the order of metric, labels, source.
  // The series of all tags, for which a view is opened.
  std::vector<storage::SeriesPtr> distinct_series;
};

//   RESOURCE_EXHAUSTED  more than max_series series would have to be looked at.
//   others              as QueryControl::Check() and as storage has it.
absl::StatusOr<TagsOfRun> FindScalarTags(const storage::Store& store, const Run& run,
                                         const NameFilter& filter, uint64_t max_series,
                                         const query::QueryControl& control);

}  // namespace tacho::server::tb
