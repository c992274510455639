// The name of an aggregate on /metrics.
//
//   loss            gauge    tacho_job_loss{job="x",stat="avg"}
//   tpu.hbm.used    gauge    tacho_job_tpu_hbm_used{job="x",stat="avg",metric="tpu.hbm.used"}
//   examples        counter  tacho_job_examples_total{job="x",stat="sum",metric="examples"}
//
// Where the family's name does not contain the original name, a label does, so that names that
// become equal ("a.b" and "a:b", "x" and "x_total") stay distinct.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "storage/model/series.h"

namespace tacho::server::aggregate {

struct ExpositionName {
  std::string family;
  std::string metric_label;  // Empty: the family contains the name.
};

// The name that a rule's `rename` makes. {metric} becomes [a-z0-9_]: "LearningRate" becomes
// learning_rate; a run of other characters becomes one underscore, or none at the ends. Then:
//   - a counter ends in _total;
//   - a gauge that ends in what Prometheus reserves (_total, _count, _sum, _bucket, _info) gets
//     _value; a histogram loses _bucket;
//   - a name that is one of the collector's own families gets _value, a counter _value_total.
ExpositionName ExpositionNameOf(absl::string_view rename, absl::string_view metric_name,
                                storage::MetricType type);

// The name of the family of a counter's rates: that of the counter with _per_second for _total.
std::string RateFamily(absl::string_view counter_family);

// Whether a family of this name is one of the collector's own (server/metrics/metric_table.h).
bool IsCollectorFamily(absl::string_view family);

}  // namespace tacho::server::aggregate
