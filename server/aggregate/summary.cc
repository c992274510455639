#include "server/aggregate/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "server/aggregate/quantile.h"

namespace tacho::server {

Summary Summarize(std::vector<double> values) {
  Summary summary;
  summary.count = values.size();
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  summary.non_finite = summary.count - values.size();
  std::sort(values.begin(), values.end());
  summary.p50 = QuantileOfSorted(values, 0.5);
  summary.p90 = QuantileOfSorted(values, 0.9);
  summary.p99 = QuantileOfSorted(values, 0.99);
  if (values.empty()) {
    summary.sum = summary.avg = summary.min = summary.max =
        std::numeric_limits<double>::quiet_NaN();
    return summary;
  }
  long double sum = 0;  // Longer, so that an average of huge values is no infinity.
  for (const double value : values) sum += value;
  summary.sum = static_cast<double>(sum);
  summary.avg = static_cast<double>(sum / static_cast<long double>(values.size()));
  summary.min = values.front();
  summary.max = values.back();
  return summary;
}

}  // namespace tacho::server
