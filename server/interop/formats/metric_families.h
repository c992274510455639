// Metrics in the protobuf form of Prometheus' clients, which Go's `push` package sends if it is not
// told otherwise (prometheus/client_model, io/prometheus/client/metrics.proto): messages of
// io.prometheus.client.MetricFamily, each after its length as a varint.
//
// They become what the same metrics are in the text format: a histogram is NAME_bucket with the
// label le, NAME_count and NAME_sum, a summary NAME with the label quantile, NAME_count and
// NAME_sum. Left out: exemplars, start times, and the buckets of native histograms.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/exposition/exposition.h"

namespace tacho::server::interop {

// `body` is not trusted.
//   INVALID_ARGUMENT    the bytes are no such messages, hold text that is not UTF-8, or break a
//   rule
//                       of the text format: a name, a label twice, a metric without the value of
//                       its type. The text names the family.
//   RESOURCE_EXHAUSTED  it has more samples or labels than the limits allow.
absl::StatusOr<Exposition> ReadMetricFamilies(absl::string_view body,
                                              const ExpositionLimits& limits = {});

}  // namespace tacho::server::interop
