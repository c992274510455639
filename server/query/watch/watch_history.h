// The first part of a watch: what was stored when it began.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/query/read/query_control.h"
#include "server/query/watch/watch_rows.h"
#include "storage/store.h"

namespace tacho::server::query {

// Sends the events, if the plan wants them, and the series with samples from plan.begin_ns on.
// `view` was opened with the subscription. It is null if the plan asks for no history: then this only
// checks the number of series. Each series that is sent gets its number in *numbers.
//   RESOURCE_EXHAUSTED  more series match than the plan allows.
//   others              from the store, control.Check() and `send`.
absl::Status SendHistory(const storage::Store& store, const WatchPlan& plan, storage::JobView* view,
                         const QueryControl& control,
                         absl::FunctionRef<absl::Status(const v1::WatchResponse&)> send,
                         SeriesNumbers* numbers);

}  // namespace tacho::server::query
