// Query.Cardinality: how many series there are, and what the limits refused.
#pragma once

#include "absl/status/status.h"
#include "server/limits/refusal_ledger.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// `refusals` may be nullptr: the answer then has none. Statuses as in proto/tacho/v1/query.proto.
absl::Status Cardinality(const storage::Store& store, const limits::RefusalLedger* refusals,
                         const v1::CardinalityRequest& request, v1::CardinalityResponse* response);

}  // namespace tacho::server::query
