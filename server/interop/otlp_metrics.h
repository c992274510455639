// Reads metrics of OpenTelemetry (open-telemetry/opentelemetry-proto, docs/specification.md and
// opentelemetry/proto/metrics/v1/metrics.proto).
//
//   Gauge, Sum              a series NAME; a monotonic sum is a counter. Deltas are added up.
//                           A cumulative one whose start time moves on has the value 0 a
//                           millisecond after that time, too: it was reset.
//   Histogram               NAME_bucket with the label le (cumulative), NAME_count, NAME_sum, and
//   ExponentialHistogram    NAME_min and NAME_max where they are told; exponential ones with
//                           deltas are rejected
//   Summary                 NAME with the label quantile, NAME_count, NAME_sum
//   "no recorded value"     the series has ended
//
// Names stay as they are. Labels are the point's attributes and the resource's that are asked for,
// with _ for each character that a label's name may not have. Whole numbers become doubles, which
// are exact up to 2^53. Exemplars are counted and left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/interop/formats/counter_starts.h"
#include "server/interop/formats/delta_sums.h"
#include "server/interop/formats/foreign_write.h"
#include "server/interop/formats/otlp_shapes.h"

namespace tacho::server::interop {

// What is remembered of earlier requests. Thread-safe.
struct OtlpMemory {
  explicit OtlpMemory(size_t max_series)
      : deltas(max_series), starts(max_series), shapes(max_series * kShapeBytes) {}

  // Of the shapes, for each series; it is some 400 on average.
  static constexpr size_t kShapeBytes = 512;

  DeltaSums deltas;      // Totals of deltas.
  CounterStarts starts;  // Of counters and histograms.
  OtlpShapes shapes;  // Metrics that may come again. They make a request cheaper, and no different.
};

// What a request has changed there. If it is not stored, this is to be taken back, because it comes
// again.
struct OtlpNoted {
  std::vector<DeltaSums::Added> added;       // Deltas that are in the totals now.
  std::vector<CounterStarts::Reset> resets;  // Counters that began again.
  void TakeBack(OtlpMemory* memory) const {
    memory->deltas.TakeBack(added);
    memory->starts.TakeBack(resets);
  }
};

struct OtlpMetrics {
  ForeignWrite write;
  // Points that cannot be read, and why the first of them cannot.
  uint64_t rejected = 0;
  std::string problem;
  OtlpNoted noted;
};

// `request` has the bytes of an ExportMetricsServiceRequest and is not trusted. The result does not
// point into it. Time and memory are linear in its size.
//   INVALID_ARGUMENT (MALFORMED)    the bytes are no such message, or hold text that is not UTF-8,
//                                   or a message twice that protobuf would merge, which no sender
//                                   does.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  as ForeignWrite::CheckSize().
absl::StatusOr<OtlpMetrics> ReadOtlpMetrics(absl::string_view request,
                                            const std::vector<std::string>& resource_attributes,
                                            OtlpMemory* memory);

}  // namespace tacho::server::interop
