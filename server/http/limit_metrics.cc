#include "server/http/limit_metrics.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tacho::server::http {
namespace {

// Of each job. A rule may give a smaller metric a lower limit, but hardly below so many larger
// ones.
constexpr size_t kLargest = 8;

struct Use {
  double used = 0;
  double limit = 0;
  // Below zero once a limit was lowered under what there is.
  double Headroom() const { return limit == 0 ? 0 : 1 - used / limit; }
};

template <typename All, typename Used>
Use Nearest(const All& all, Used used, double limit_of_none) {
  Use nearest{0, limit_of_none};
  for (const auto& one : all) {
    const Use use{static_cast<double>(used(one)), static_cast<double>(one.bound)};
    if (use.Headroom() < nearest.Headroom()) nearest = use;
  }
  return nearest;
}

class Families {
 public:
  void Add(storage::Limit limit, const Use& use) {
    Add(limit, use.limit, &limits_);
    Add(limit, use.used, &used_);
    Add(limit, use.Headroom(), &headroom_);
  }
  std::vector<prometheus::MetricFamily> Take() {
    return {std::move(limits_), std::move(used_), std::move(headroom_)};
  }

 private:
  static void Add(storage::Limit limit, double value, prometheus::MetricFamily* family) {
    prometheus::ClientMetric metric;
    metric.label.push_back({"limit", std::string(storage::LimitKey(limit))});
    metric.gauge.value = value;
    family->metric.push_back(std::move(metric));
  }
  static prometheus::MetricFamily Gauge(std::string name, std::string help) {
    return {std::move(name), std::move(help), prometheus::MetricType::Gauge, {}};
  }

  prometheus::MetricFamily limits_ =
      Gauge("tacho_limit", "The limit; of those on jobs, metrics and labels, where least is left.");
  prometheus::MetricFamily used_ = Gauge("tacho_limit_used", "What is used of that limit.");
  prometheus::MetricFamily headroom_ = Gauge(
      "tacho_limit_headroom_ratio", "What is left of that limit, from 1, all, to 0, nothing.");
};

}  // namespace

std::vector<prometheus::MetricFamily> LimitFamilies(const storage::Store& store) {
  using storage::Limit;
  const auto limits = store.limits();
  const auto report = store.Cardinality("", kLargest);
  if (limits == nullptr || !report.ok()) return {};
  Families families;
  for (const auto& total : report->totals) {
    families.Add(total.limit, {static_cast<double>(total.used), static_cast<double>(total.bound)});
  }
  const storage::SeriesLimits& outside = limits->OfRule(storage::LimitPolicy::kNoRule);
  const auto series = [](const auto& one) { return one.series; };
  families.Add(Limit::kJobSeries,
               Nearest(report->jobs, series, static_cast<double>(outside.series_per_job)));
  families.Add(Limit::kMetricSeries,
               Nearest(report->metrics, series, static_cast<double>(outside.series_per_metric)));
  families.Add(Limit::kLabelValues, Nearest(
                                        report->labels, [](const auto& one) { return one.values; },
                                        static_cast<double>(outside.values_per_label)));
  return families.Take();
}

}  // namespace tacho::server::http
