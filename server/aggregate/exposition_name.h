// What an aggregate is called on /metrics.
//
//   loss            gauge    tacho_job_loss{job="x",stat="avg"}
//   tpu.hbm.used    gauge    tacho_job_tpu_hbm_used{job="x",stat="avg",metric="tpu.hbm.used"}
//   examples        counter  tacho_job_examples_total{job="x",stat="sum",metric="examples"}
//
// The original name is a label wherever it is not what stands in the family's, so that names which
// fall together ("a.b" and "a:b", "x" and "x_total") stay apart.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "storage/model/series.h"

namespace tacho::server::aggregate {

struct ExpositionName {
  std::string family;
  std::string metric_label;  // Empty: the family tells the name.
};

// The name that a rule's `rename` gives. {metric} becomes [a-z0-9_]: "LearningRate" becomes
// learning_rate; other characters become one underscore where they stand together, none at the
// ends. Then:
//   - a counter ends in _total;
//   - a gauge does not end in what Prometheus reserves (_total, _count, _sum, _bucket, _info): it
//     gets _value; a histogram loses _bucket;
//   - no name is that of a family of the collector's own: it gets _value, a counter _value_total.
ExpositionName ExpositionNameOf(absl::string_view rename, absl::string_view metric_name,
                                storage::MetricType type);

// The name of the family of a counter's rates: that of the counter with _per_second for _total.
std::string RateFamily(absl::string_view counter_family);

// Whether a family of this name is one of the collector's own (server/metrics/metric_table.h).
bool IsCollectorFamily(absl::string_view family);

}  // namespace tacho::server::aggregate
