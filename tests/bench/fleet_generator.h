// A fleet that trains, as data: 88 series a host, about one row a second, the same on every run.
//
// The values are shaped like those of real hosts, because a codec's figure is only as true as its
// input: sensors quantised as their drivers report them (degrees, milliwatts, clock steps), duty
// cycles with two decimals, byte counters, losses that were float32, durations that use every bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tacho/v1/types.pb.h"

namespace tacho::bench {

inline constexpr size_t kChips = 8;
inline constexpr size_t kChipMetrics = 9;
inline constexpr size_t kStepMetrics = 6;
inline constexpr size_t kHostMetrics = 10;
inline constexpr size_t kSeries = kChips * kChipMetrics + kStepMetrics + kHostMetrics;
static_assert(kSeries == 88);

struct FleetMetric {
  const char* name;
  v1::MetricType type;
  const char* unit;
  const char* help;
};

// One column of a host's row.
struct FleetSeries {
  const FleetMetric* metric;
  int chip;  // -1: the series belongs to no chip.
};

// The columns of every host, in the order of FleetRow::values.
std::span<const FleetSeries> FleetColumns();

struct FleetOptions {
  uint64_t seed = 1;
  uint32_t hosts_per_job = 50;
  std::string job_prefix = "fleet-";    // A number of three digits follows.
  int64_t start_unix_ns = 0;            // Time of the first rows.
  int64_t interval_ns = 1'000'000'000;  // From one row to the next.
  uint32_t skip_rows = 0;  // Rows of each host that are left out: a load before had them.
};

struct FleetRow {
  int64_t time_unix_ns;
  int64_t step;
  std::array<double, kSeries> values;
};

// SplitMix64: the same numbers with every standard library, unlike <random>'s distributions.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  double Uniform();                                                   // [0, 1)
  double Noise() { return Uniform() + Uniform() + Uniform() - 1.5; }  // Bell-like, within ±1.5.
  bool Chance(double probability) { return Uniform() < probability; }

 private:
  uint64_t state_;
};

// One host: task `index % hosts_per_job` of job `index / hosts_per_job`. One thread at a time.
class FleetHost {
 public:
  FleetHost(const FleetOptions& options, uint32_t index);

  const std::string& job() const { return job_; }
  const std::string& host() const { return host_; }
  uint32_t task() const { return task_; }

  // Another interval. Levels wander by as much a row, however long it is.
  FleetRow NextRow();

 private:
  struct Chip {
    double duty, tensorcore, power, temperature, used_bytes, sent_bytes, throttles;
  };

  void FillChip(Chip* chip, bool stalled, std::span<double> values);
  void FillStep(std::span<double> values);
  void FillHost(std::span<double> values);

  Random random_;
  std::string job_;
  std::string host_;
  uint32_t task_;
  int64_t time_ns_;
  int64_t interval_ns_;
  double train_seconds_ = 0;
  int64_t step_ = 0;
  double step_seconds_;
  std::array<Chip, kChips> chips_;
  double cpu_ = 35, memory_ = 200e9, load_ = 40, pressure_ = 0;
  double received_ = 0, sent_ = 0, read_ = 0, written_ = 0;
};

}  // namespace tacho::bench
