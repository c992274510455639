// What the chips of a simulated host measure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tacho/v1/types.pb.h"

namespace tacho::fleet {

enum class Activity : uint8_t {
  kTraining,
  kWaiting,  // Spinning in a collective that somebody does not enter: busy, without arithmetic.
  kIdle,     // No work: hung before the collective, compiling, ended.
};

// Lasting state; the counters only grow.
struct ChipState {
  Activity activity = Activity::kIdle;
  int64_t idle_since_ns = 0;  // The start of kIdle.
  double tensor_share = 1;    // Share of its usual arithmetic a second: how much longer steps take.
  double clock_factor = 1;    // Below 1: throttled.
  bool hot = false;           // For heat.
  bool allocated = false;     // The trainer holds memory.
  double leaked_bytes = 0;
  uint64_t ecc_uncorrected = 0;
  uint64_t ecc_corrected = 0;
  uint64_t xid_errors = 0;
  uint64_t remapped_rows = 0;
};

struct ChipMetric {
  const char* name;
  v1::MetricType type;
  const char* unit;
  const char* help;
};
inline constexpr size_t kChipMetrics = 16;
// In the order of values.
extern const std::array<ChipMetric, kChipMetrics> kChipMetricList;

inline constexpr double kHbmBytes = 80.0 * 1024 * 1024 * 1024;

// `key` is this chip's own; the same time gives the same values.
std::array<double, kChipMetrics> SampleChip(const ChipState& chip, uint64_t key, int64_t time_ns);

}  // namespace tacho::fleet
