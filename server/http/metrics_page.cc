#include "server/http/metrics_page.h"

#include <prometheus/text_serializer.h>

#include <iterator>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/aggregate/job_aggregates.h"
#include "server/aggregate/job_families.h"
#include "server/http/families.h"
#include "server/http/process_metrics.h"
#include "server/http/store_metrics.h"

namespace tacho::server {
namespace {

using Families = std::vector<prometheus::MetricFamily>;

void Append(Families families, Families* all) {
  all->insert(all->end(), std::make_move_iterator(families.begin()),
              std::make_move_iterator(families.end()));
}

prometheus::MetricFamily BuildInfo() {
  prometheus::MetricFamily info =
      GaugeFamily("tacho_build_info", "Always 1; the version is in its label.", 1);
  info.metric.front().label.push_back({"version", TACHO_VERSION});
  return info;
}

}  // namespace

MetricsPage::MetricsPage(MetricsPageOptions options) : options_(std::move(options)) {}

std::string MetricsPage::Render() const {
  const absl::Time began = absl::Now();
  Families all;
  if (options_.registry != nullptr) Append(options_.registry->Collect(), &all);
  Append(StoreFamilies(options_.store->Stats()), &all);
  Append(ProcessFamilies(), &all);
  all.push_back(BuildInfo());
  const auto jobs = AggregateJobs(*options_.store, options_.now(),
                                  absl::Nanoseconds(options_.options.staleness()));
  Append(JobFamilies(jobs, options_.options.max_series()), &all);
  all.push_back(GaugeFamily("tacho_scrape_collect_seconds",
                            "Time it took to compute this page, before it was written as text.",
                            absl::ToDoubleSeconds(absl::Now() - began)));
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace tacho::server
