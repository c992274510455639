#include "server/job_boards.h"

#include <iterator>
#include <utility>

#include "server/goodput/goodput_families.h"

namespace tacho::server {

JobBoards::JobBoards(goodput::GoodputBoardOptions goodput,
                     std::shared_ptr<const cost::CostSettings> cost, process::Reloader* reloader) {
  cost::CostBoardOptions options;
  options.store = goodput.store;
  options.now = goodput.now;
  options.reports = goodput.reports;
  options.settings = std::move(cost);
  goodput_ = std::make_unique<goodput::GoodputBoard>(std::move(goodput));
  cost_ = std::make_unique<cost::CostBoard>(std::move(options));
  reloader->Add(goodput_.get());
  reloader->Add(cost_.get());
}

std::vector<prometheus::MetricFamily> JobBoards::Families(size_t max_host_lines) const {
  auto families = goodput::GoodputFamilies(goodput_->Newest(), goodput_->Stats(), max_host_lines);
  auto costs = cost::CostFamilies(cost_->Newest(), cost_->Stats());
  families.insert(families.end(), std::make_move_iterator(costs.begin()),
                  std::make_move_iterator(costs.end()));
  return families;
}

void JobBoards::Stop() {
  goodput_->Stop();
  cost_->Stop();
}

}  // namespace tacho::server
