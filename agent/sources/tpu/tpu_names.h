// libtpu's metrics and the names under which they are recorded.
//
// libtpu's: AI-Hypercomputer/cloud-accelerator-diagnostics, tpu_info/metrics.py. Ours:
// docs/notation.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agent/sources/rows/chip_sample.h"

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
  ChipMetric metric;
  double factor = 1;    // From libtpu's unit to ours.
  ChipMetric sum = {};  // Of distributions.
};

std::span<const TpuMetric> TpuMetrics();
// Their libtpu names; without distributions where those are not wanted.
std::vector<std::string> WantedTpuMetrics(bool distributions);

// What is found out without libtpu, or from several of its metrics.
extern const ChipMetric kTpuState;       // Labels chip, state.
extern const ChipMetric kTpuInfo;        // Labels chip, kind, pci.
extern const ChipMetric kTpuDeviceInfo;  // Labels chip, core, device.
extern const ChipMetric kTpuPeakFlops;   // Label chip, as of the next two.
extern const ChipMetric kTpuHbmBytes;
extern const ChipMetric kTpuHbmBandwidth;
extern const ChipMetric kTpuExecutionP50;  // Labels chip, core_type, as of the next two.
extern const ChipMetric kTpuExecutionP99;
extern const ChipMetric kTpuExecutionMean;
extern const ChipMetric kTpuPortUp;  // Label port.
extern const ChipMetric kTpusExpected;
extern const ChipMetric kTpusPresent;
extern const ChipMetric kTpuLeftOut;  // What could not be recorded.

}  // namespace tacho::agent
