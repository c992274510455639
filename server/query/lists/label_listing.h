// ListMetrics and LabelValues: what can be asked for.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr uint64_t kDefaultLabelValues = 10'000;

// Statuses as in query.proto, and those of control.Check().

absl::Status ListMetrics(const storage::Store& store, const v1::ListMetricsRequest& request,
                         v1::ListMetricsResponse* response);

// Looks at each selected series, of which there may be `max_series`. With a condition on "attempt":
// at those that have a sample of such an attempt, which is found by reading.
absl::Status LabelValues(const storage::Store& store, const v1::LabelValuesRequest& request,
                         uint64_t max_series, const QueryControl& control,
                         v1::LabelValuesResponse* response);

}  // namespace tacho::server::query
