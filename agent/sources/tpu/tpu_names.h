// libtpu's metrics and the names under which they are recorded.
//
// libtpu's: AI-Hypercomputer/cloud-accelerator-diagnostics, tpu_info/metrics.py. Ours:
// docs/notation.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agent/sources/rows/sample.h"

namespace tacho::agent {

enum class TpuMetricKind : uint8_t {
  kDevice,        // One value a device: label device_id.
  kQueue,         // One value a core: labels device_ordinal, core_type.
  kExecution,     // One distribution a core, with the same labels.
  kUptime,        // Labels ml_framework_name, ml_framework_version.
  kErrors,        // Not 0: an error, which the labels describe.
  kDistribution,  // Cumulative.
  kCounter,       // Cumulative.
};

struct TpuMetric {
  const char* libtpu;
  TpuMetricKind kind;
  Metric metric;
  double factor = 1;  // From libtpu's unit to ours.
  Metric sum = {};    // Set for distributions.
};

std::span<const TpuMetric> TpuMetrics();
// Their libtpu names; without distributions where those are not wanted.
std::vector<std::string> WantedTpuMetrics(bool distributions);

// Metrics that are found out without libtpu, or from several of its metrics.
extern const Metric kTpuState;       // Labels chip, state.
extern const Metric kTpuInfo;        // Labels chip, kind, pci.
extern const Metric kTpuDeviceInfo;  // Labels chip, core, device.
extern const Metric kTpuPeakFlops;   // Label chip; so have the next two.
extern const Metric kTpuHbmBytes;
extern const Metric kTpuHbmBandwidth;
extern const Metric kTpuExecutionP50;  // Labels chip, core_type; so have the next two.
extern const Metric kTpuExecutionP99;
extern const Metric kTpuExecutionMean;
extern const Metric kTpuPortUp;  // Label port.
extern const Metric kTpusExpected;
extern const Metric kTpusPresent;
extern const Metric kTpuLeftOut;  // Counts what could not be recorded.

}  // namespace tacho::agent
