// The names under which a GPU's values are recorded: tacho's own and dcgm-exporter's.
//
// Own names: docs/notation.md. dcgm-exporter's: NVIDIA/dcgm-exporter, etc/default-counters.csv;
// units as there: per cent, MiB, W and mJ, ratios for the metrics of the performance monitors.
#pragma once

#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "agent/sources/gpu/gpu_values.h"
#include "agent/sources/rows/sample.h"

namespace tacho::agent {

struct GpuMetric {
  GpuValue value;
  Metric metric;
  double factor = 1;             // From NVML's unit to the metric's.
  const char* reason = nullptr;  // Value of the label `reason`, where there is one.
};

std::span<const GpuMetric> TachoGpuMetrics();
std::span<const GpuMetric> DcgmGpuMetrics();

struct GpuNames {
  bool tacho = true;
  bool dcgm = false;
  std::string host;             // For dcgm's label.
  std::string dcgm_host_label;  // Its name.
  std::string driver;           // Version.
};

// The identity and the state of a chip, beside its readings.
struct GpuChip {
  std::string chip;  // The label.
  GpuIdentity identity;
  double xids = 0;      // Counted since the agent started.
  double last_xid = 0;  // 0: none.
};

void AddReading(const GpuChip& chip, const GpuReading& reading, const GpuNames& names,
                Sample* sample);
// The labels that dcgm-exporter gives a GPU, and `chip`.
Labels DcgmLabels(const GpuChip& chip, const GpuNames& names);

// Metrics that do not come from a reading.
extern const Metric kChipState;      // Labels chip, state.
extern const Metric kChipInfo;       // Labels chip, kind, uuid, pci, driver.
extern const Metric kChipsExpected;  // Counts the chips that the host should have.
extern const Metric kChipsPresent;

}  // namespace tacho::agent
