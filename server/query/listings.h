// ListSeries, Latest and ListEvents: index look-ups that are sent in pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/query/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server {

inline constexpr uint64_t kDefaultListedSeries = 100'000;
// A piece is sent when it has grown past this; one entry is at most a few KiB more.
inline constexpr size_t kListingPieceBytes = 256 << 10;

// Takes one piece. Its error ends the listing and is returned.
template <typename Response>
using Send = absl::FunctionRef<absl::Status(const Response&)>;

// Each returns the statuses of query.proto, and those of control.Check().

// With a condition on "attempt": the series that have a sample of such an attempt.
absl::Status ListSeries(const storage::Store& store, const v1::ListSeriesRequest& request,
                        uint64_t max_series, const QueryControl& control,
                        Send<v1::ListSeriesResponse> send);

// Series without a sample are left out. With a condition on "attempt": the newest sample of such an
// attempt, which is found by reading the series where a newer attempt has samples.
absl::Status Latest(const storage::Store& store, const v1::LatestRequest& request,
                    uint64_t max_series, const QueryControl& control,
                    Send<v1::LatestResponse> send);

absl::Status ListEvents(const storage::Store& store, const v1::ListEventsRequest& request,
                        const QueryControl& control, Send<v1::ListEventsResponse> send);

}  // namespace tacho::server
