// Everything that is stored of one job, in one consistent pass.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/query/range/range_plan.h"
#include "server/query/read/message_packing.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// Sends the messages in the order of query.proto, each as soon as it is full. Holds a chunk of one
// series, the job's open rows and its events.
//   The statuses are those of query.proto, control.Check() and `send`.
absl::Status Export(const storage::Store& store, const v1::ExportRequest& request,
                    const RangeLimits& limits, absl::Time now, const QueryControl& control,
                    Send<const v1::ExportResponse&> send);

}  // namespace tacho::server::query
