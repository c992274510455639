// ListSeries, Latest, ListMetrics, LabelValues and Cardinality: what the index knows, and the
// newest samples. Long lists are sent in several messages.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/limits/refusal_ledger.h"
#include "server/query/read/message_packing.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr uint64_t kDefaultListedSeries = 100'000;
inline constexpr uint32_t kDefaultTop = 20;  // Of Cardinality.

// Each returns the statuses of query.proto, and those of control.Check().

// With a condition on "attempt": only series that have a sample of such an attempt.
absl::Status ListSeries(const storage::Store& store, const v1::ListSeriesRequest& request,
                        uint64_t max_series, const QueryControl& control,
                        Send<v1::ListSeriesResponse> send);

// Leaves out series without a sample. With a condition on "attempt": the newest sample of such an
// attempt. To find it, a series is read if a newer attempt has samples.
absl::Status Latest(const storage::Store& store, const v1::LatestRequest& request,
                    uint64_t max_series, const QueryControl& control,
                    Send<v1::LatestResponse> send);

inline constexpr uint64_t kDefaultLabelValues = 10'000;

absl::Status ListMetrics(const storage::Store& store, const v1::ListMetricsRequest& request,
                         v1::ListMetricsResponse* response);

// Looks at each selected series, at most `max_series`. With a condition on "attempt": only at
// series that have a sample of such an attempt, which it reads to find out.
absl::Status LabelValues(const storage::Store& store, const v1::LabelValuesRequest& request,
                         uint64_t max_series, const QueryControl& control,
                         v1::LabelValuesResponse* response);

// How many series there are, and what the limits refused. `refusals` may be nullptr: the answer
// then has none.
absl::Status Cardinality(const storage::Store& store, const limits::RefusalLedger* refusals,
                         const v1::CardinalityRequest& request, v1::CardinalityResponse* response);

}  // namespace tacho::server::query
