#include "server/cost/cost_board.h"

#include <utility>

#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/query/read/query_control.h"

namespace tacho::server::cost {

CostBoard::CostBoard(CostBoardOptions options)
    : options_(std::move(options)),
      settings_(options_.settings),
      rounds_(options_, [this](const std::string& job, const goodput::JobRounds::Figures&,
                               const std::atomic<bool>& stopping) { return Make(job, stopping); }) {
  TACHO_CHECK(settings_ != nullptr);
  rounds_.Start("cost");
}

absl::StatusOr<std::function<void()>> CostBoard::Prepare(const config::v1::Collector& config) {
  TACHO_ASSIGN_OR_RETURN(auto settings, CostSettingsOf(config));
  return [this, settings = std::move(settings)] {
    {
      absl::MutexLock lock(&mutex_);
      settings_ = settings;
    }
    rounds_.MakeAllAgain();
  };
}

absl::StatusOr<goodput::JobRounds::Figures> CostBoard::Make(const std::string& job,
                                                            const std::atomic<bool>& stopping) {
  const goodput::JobRounds::Figures nothing;
  std::shared_ptr<const CostSettings> settings;
  {
    absl::MutexLock lock(&mutex_);
    settings = settings_;
  }
  // The job of the hosts makes no steps; its chips are those of the jobs on them.
  if (job == settings->power.hosts_job) return nothing;
  if (settings->prices.empty()) {
    TACHO_ASSIGN_OR_RETURN(
        const bool recorded,
        PowerIsRecorded(*options_.store, job, settings->signals, settings->power));
    if (!recorded) return nothing;
  }
  const query::QueryControl control(absl::InfiniteDuration(), MonotonicNow, &stopping);
  TACHO_ASSIGN_OR_RETURN(JobCost cost, CostOf(*options_.store, job, *settings, options_.now(),
                                              control, options_.reports));
  if (!cost.inputs.energy.has_value() && !cost.cost.has_value()) return nothing;
  return std::make_shared<const JobCost>(std::move(cost));
}

}  // namespace tacho::server::cost
