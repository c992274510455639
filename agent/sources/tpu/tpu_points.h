// The answers of libtpu about one metric, in plain types: checked, bounded, of one spelling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tpu::monitoring::runtime {
class GetTpuRuntimeStatusResponse;
class TPUMetric;
}  // namespace tpu::monitoring::runtime

namespace tacho::agent {

struct TpuDistribution {
  double count = 0;
  double sum = 0;
  std::vector<double> bounds;  // Ascending, finite.
  std::vector<double> counts;  // One more than bounds: below the first, ..., above the last.
};

struct TpuPoint {
  // "device-id" is "device_id" here, numbers are text: releases of libtpu differ in both.
  std::map<std::string, std::string> labels;
  double value = 0;  // Set for gauges and counters.
  std::optional<TpuDistribution> distribution;
  int64_t start_ns = 0;  // Since when it counts; 0: not said.
};

struct TpuPoints {
  std::vector<TpuPoint> points;
  // Distributions whose buckets do not fit their options, values that are no numbers, and points
  // beyond the bound.
  size_t left_out = 0;
};

// Bounds the points of one metric. Sixteen chips have fewer, whatever the metric.
inline constexpr size_t kMaxTpuPoints = 2048;
inline constexpr size_t kMaxTpuBuckets = 200;

TpuPoints DecodeTpuMetric(const tpu::monitoring::runtime::TPUMetric& metric);

// The value below which the share `p`, 0..1, of what was counted lies, interpolated within its
// bucket. None if nothing was counted, or it has no buckets.
std::optional<double> PercentileOf(const TpuDistribution& distribution, double p);

// The work of each core of a TPU, as fields of an event, to be compared over all hosts of a job.

// More cores than any machine has. Beyond, they are left out.
inline constexpr size_t kMaxCoresTold = 64;

struct TpuCoreState {
  std::string text;  // For a person.
  // core (global), chip (the runtime's number), core_type, core_index, fingerprint (hexadecimal),
  // launch, queued, error, and for each sequencer i of the first seven: sequencer_i (its kind),
  // pc_i, run_i.
  std::map<std::string, std::string> fields;
};

// By core. Empty where libtpu reports nothing.
std::vector<TpuCoreState> CoreStatesOf(
    const tpu::monitoring::runtime::GetTpuRuntimeStatusResponse& response);

}  // namespace tacho::agent
