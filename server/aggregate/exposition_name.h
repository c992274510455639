// What a job's metric is called on /metrics.
//
//   loss            gauge    tacho_job_loss{job="x",stat="avg"}
//   tpu.hbm.used    gauge    tacho_job_tpu_hbm_used{job="x",stat="avg",metric="tpu.hbm.used"}
//   examples        counter  tacho_job_examples_total{job="x",stat="sum",metric="examples"}
//
// The original name is a label wherever it is not what follows "tacho_job_", so that names which
// fall together ("a.b" and "a:b", "x" and "x_total") stay apart.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "storage/series.h"

namespace tacho::server {

struct ExpositionName {
  std::string family;
  std::string metric_label;  // Empty: the family tells the name.
};

// [a-z0-9_] after "tacho_job_": "LearningRate" becomes learning_rate; other characters become one
// underscore where they stand together, none at the ends. Then:
//   - a counter ends in _total;
//   - a gauge does not end in what Prometheus reserves (_total, _count, _sum, _bucket, _info): it
//     gets _value;
//   - neither is a family of the collector's own about the job (job_families.h): it gets _value.
ExpositionName ExpositionNameOf(absl::string_view metric_name, storage::MetricType type);

}  // namespace tacho::server
