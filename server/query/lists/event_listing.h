// ListEvents: what happened to a job, besides its samples.
#pragma once

#include "absl/status/status.h"
#include "server/query/lists/listings.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// Holds one event at a time and one message of the answer; with `newest`, that many events.
//   The statuses are those of query.proto and control.Check().
absl::Status ListEvents(const storage::Store& store, const v1::ListEventsRequest& request,
                        const QueryControl& control, Send<v1::ListEventsResponse> send);

}  // namespace tacho::server::query
