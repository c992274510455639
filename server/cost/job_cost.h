// What one stored job used and costs, always made from all that the store holds of it, as its
// ledger (goodput/job_goodput.h).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/conditions/window/signal_names.h"
#include "server/cost/cost_figures.h"
#include "server/cost/job_power.h"
#include "server/cost/price_list.h"
#include "server/goodput/attempt_facts.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::cost {

// What `cost` and `conditions.signals` of the configuration say. Immutable.
struct CostSettings {
  PriceList prices;
  PowerNames power;
  conditions::SignalNames signals;
};
// The statuses of PriceList::Create().
absl::StatusOr<std::shared_ptr<const CostSettings>> CostSettingsOf(
    const config::v1::Collector& config);

//   NOT_FOUND  there is no such job.
//   others     from the store and the control.
absl::StatusOr<JobCost> CostOf(const storage::Store& store, absl::string_view job,
                               const CostSettings& settings, absl::Time now,
                               const query::QueryControl& control,
                               const goodput::AgentReports& reports = nullptr);

}  // namespace tacho::server::cost
