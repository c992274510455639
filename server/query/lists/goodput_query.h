// Query.Goodput: a job's ledger in the words of the protocol.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/conditions/window/signal_names.h"
#include "server/goodput/job_goodput.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// GoodputRequest.max_spans is at most this.
inline constexpr uint32_t kMaxLedgerSpans = 10'000;

//   INVALID_ARGUMENT  the text names the field.
//   NOT_FOUND         no such job; the text names the nearest names.
absl::Status GetGoodput(const storage::Store& store, const v1::GoodputRequest& request,
                        const conditions::SignalNames& names, absl::Time now,
                        const QueryControl& control, v1::GoodputResponse* response,
                        const goodput::AgentReports& reports = nullptr);

void ToProto(const goodput::StepFigures& figures, v1::StepFigures* proto);
void ToProto(const goodput::JobGoodput& goodput, bool totals_only, v1::GoodputResponse* response);

}  // namespace tacho::server::query
