// What a watch tells first: what was stored when it began.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/query/read/query_control.h"
#include "server/query/watch/watch_rows.h"
#include "storage/store.h"

namespace tacho::server::query {

// Sends the events, if they are wanted, and the series with samples from plan.begin_ns on. `view`
// is as it was opened with the subscription; null if the plan asks for no history: then only the
// number of series is looked at. *numbers are those that the series have got.
//   RESOURCE_EXHAUSTED  more series match than the plan allows.
//   others              as storage has them, those of control.Check() and of `send`.
absl::Status SendHistory(const storage::Store& store, const WatchPlan& plan, storage::JobView* view,
                         const QueryControl& control,
                         absl::FunctionRef<absl::Status(const v1::WatchResponse&)> send,
                         SeriesNumbers* numbers);

}  // namespace tacho::server::query
