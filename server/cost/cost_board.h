// The newest cost of every live job, for the metrics page: JobRounds of costs. Power of many chips
// over weeks takes long to add up; tacho_cost_oldest_seconds shows how old the figures get.
#pragma once

#include <prometheus/metric_family.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/cost/job_cost.h"
#include "server/goodput/job_rounds.h"
#include "server/process/reloadable.h"

namespace tacho::server::cost {

struct CostBoardOptions : goodput::JobRoundsOptions {
  CostBoardOptions() {
    interval = absl::Minutes(1);
    idle_interval = absl::Minutes(5);
    share = 0.05;
  }

  std::shared_ptr<const CostSettings> settings;  // At the start. Not null.
  goodput::AgentReports reports;                 // May be null.
};

// Thread-safe. Reloads `cost` and `conditions.signals`: all costs are made again.
class CostBoard final : public process::Reloadable {
 public:
  explicit CostBoard(CostBoardOptions options);

  void Stop() { rounds_.Stop(); }

  // Refuses a price list that PriceList::Create() refuses.
  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // By name of the job. Jobs of which neither power nor chips with a price are known are left out.
  std::vector<std::shared_ptr<const JobCost>> Newest() const { return rounds_.Newest<JobCost>(); }
  goodput::JobRoundsStats Stats() const { return rounds_.Stats(); }
  void Refresh() { rounds_.Refresh(); }

 private:
  absl::StatusOr<goodput::JobRounds::Figures> Make(const std::string& job,
                                                   const std::atomic<bool>& stopping)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const CostBoardOptions options_;
  absl::Mutex mutex_;
  std::shared_ptr<const CostSettings> settings_ ABSL_GUARDED_BY(mutex_);
  goodput::JobRounds rounds_;  // Last: its thread uses the others.
};

// The costs of jobs as metric families. server/metrics/metric_table.h has their help. At most 40
// lines a job.
std::vector<prometheus::MetricFamily> CostFamilies(
    const std::vector<std::shared_ptr<const JobCost>>& jobs, const goodput::JobRoundsStats& stats);

}  // namespace tacho::server::cost
