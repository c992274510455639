// What a collector always has ready about its live jobs: their ledgers, and their costs.
#pragma once

#include <prometheus/metric_family.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/cost/cost_board.h"
#include "server/goodput/goodput_board.h"
#include "server/process/reloader.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server {

// Thread-safe.
class JobBoards {
 public:
  // Adds the boards to the reloader, which must not outlive them.
  JobBoards(goodput::GoodputBoardOptions goodput, std::shared_ptr<const cost::CostSettings> cost,
            process::Reloader* reloader);

  const goodput::GoodputBoard* goodput() const { return goodput_.get(); }
  // For the metrics page.
  std::vector<prometheus::MetricFamily> Families(size_t max_host_lines) const;
  // The store is not read after this.
  void Stop();

 private:
  std::unique_ptr<goodput::GoodputBoard> goodput_;
  std::unique_ptr<cost::CostBoard> cost_;
};

}  // namespace tacho::server
