#include "tests/bench/fleet_generator.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace tacho::bench {
namespace {

constexpr auto kGauge = v1::METRIC_TYPE_GAUGE;
constexpr auto kCounter = v1::METRIC_TYPE_COUNTER;

constexpr double kHbmBytes = 95.0 * (1 << 30);
constexpr double kPageBytes = 4096;
constexpr double kHostBytes = 1.5e12;
constexpr double kBatchExamples = 512;
constexpr double kSequenceTokens = 8192;

constexpr std::array<FleetMetric, kChipMetrics> kChipList = {{
    {"chip_duty_cycle", kGauge, "%", "Time in which the chip was busy."},
    {"chip_tensorcore_utilization", kGauge, "%", "Use of the matrix units."},
    {"chip_hbm_used_bytes", kGauge, "By", "Memory in use."},
    {"chip_hbm_total_bytes", kGauge, "By", "Memory of the chip."},
    {"chip_power_watts", kGauge, "W", "Power drawn."},
    {"chip_temperature_celsius", kGauge, "Cel", "Temperature of the die."},
    {"chip_clock_mhz", kGauge, "MHz", "Clock."},
    {"chip_interconnect_bytes_total", kCounter, "By", "Bytes sent to other chips."},
    {"chip_throttle_events_total", kCounter, "1", "Times the clock was lowered."},
}};

constexpr std::array<FleetMetric, kStepMetrics> kStepList = {{
    {"train_loss", kGauge, "1", "Loss of the step."},
    {"train_gradient_norm", kGauge, "1", "Norm of the gradient."},
    {"train_learning_rate", kGauge, "1", "Learning rate."},
    {"train_step_seconds", kGauge, "s", "Duration of the step."},
    {"train_examples_per_second", kGauge, "1/s", "Speed."},
    {"train_tokens_total", kCounter, "1", "Tokens seen."},
}};

constexpr std::array<FleetMetric, kHostMetrics> kHostList = {{
    {"host_cpu_percent", kGauge, "%", "Use of all processors."},
    {"host_memory_used_bytes", kGauge, "By", "Memory in use."},
    {"host_memory_available_bytes", kGauge, "By", "Memory that could be had."},
    {"host_load1", kGauge, "1", "Runnable threads, averaged over a minute."},
    {"host_network_receive_bytes_total", kCounter, "By", "Bytes received."},
    {"host_network_transmit_bytes_total", kCounter, "By", "Bytes sent."},
    {"host_disk_read_bytes_total", kCounter, "By", "Bytes read."},
    {"host_disk_written_bytes_total", kCounter, "By", "Bytes written."},
    {"host_pressure_cpu_some_avg10", kGauge, "%", "Time in which a thread waited for a processor."},
    {"host_pressure_io_some_avg10", kGauge, "%", "Time in which a thread waited for the disk."},
}};

std::array<FleetSeries, kSeries> MakeColumns() {
  std::array<FleetSeries, kSeries> columns;
  size_t next = 0;
  for (size_t chip = 0; chip < kChips; ++chip) {
    for (const FleetMetric& metric : kChipList) columns[next++] = {&metric, static_cast<int>(chip)};
  }
  for (const FleetMetric& metric : kStepList) columns[next++] = {&metric, -1};
  for (const FleetMetric& metric : kHostList) columns[next++] = {&metric, -1};
  return columns;
}

double Round(double value, double quantum) { return std::round(value / quantum) * quantum; }

// As a parser of the decimal text reads it: the double nearest to the decimal number.
double Decimals(double value, double scale) { return std::round(value * scale) / scale; }

double Float32(double value) { return static_cast<float>(value); }

// One step of a level that returns to `mean`.
double Revert(double level, double mean, double speed, double noise) {
  return level + (mean - level) * speed + noise;
}

double Percent(double value) { return std::clamp(value, 0.0, 100.0); }

}  // namespace

std::span<const FleetSeries> FleetColumns() {
  static const std::array<FleetSeries, kSeries> columns = MakeColumns();
  return columns;
}

uint64_t Random::Next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

FleetHost::FleetHost(const FleetOptions& options, uint32_t index)
    : random_(options.seed * 1000003 + index),
      job_(absl::StrFormat("%s%03d", options.job_prefix, index / options.hosts_per_job)),
      host_(absl::StrFormat("host-%05d", index)),
      task_(index % options.hosts_per_job),
      time_ns_(options.start_unix_ns),
      interval_ns_(options.interval_ns),
      step_seconds_(2.4 + 0.02 * random_.Noise()) {
  for (Chip& chip : chips_) {
    chip = {.duty = 92,
            .tensorcore = 48,
            .power = 450,
            .temperature = 55 + 4 * random_.Noise(),
            .used_bytes = Round(71e9 + 1e9 * random_.Noise(), 256),
            .sent_bytes = std::floor(1e15 * random_.Uniform()),
            .throttles = 0};
  }
  received_ = std::floor(1e13 * random_.Uniform());
  sent_ = std::floor(1e13 * random_.Uniform());
  read_ = Round(1e12 * random_.Uniform(), 512);
  written_ = Round(1e12 * random_.Uniform(), 512);
  for (uint32_t row = 0; row < options.skip_rows; ++row) NextRow();
}

void FleetHost::FillChip(Chip* chip, bool stalled, std::span<double> values) {
  chip->duty = Revert(chip->duty, stalled ? 5 : 92, stalled ? 0.7 : 0.3, random_.Noise());
  chip->tensorcore = Revert(chip->tensorcore, stalled ? 0 : 48, 0.5, 0.8 * random_.Noise());
  chip->power = Revert(chip->power, 120 + 3.6 * chip->duty, 0.4, 9 * random_.Noise());
  chip->temperature =
      Revert(chip->temperature, 30 + chip->power / 18, 0.03, 0.15 * random_.Noise());
  if (random_.Chance(0.02)) {
    chip->used_bytes = Round(chip->used_bytes + 2e6 * random_.Noise(), 256);
  }
  chip->sent_bytes += std::floor(chip->duty * 2e8 * (1 + 0.05 * random_.Noise()));
  const bool throttled = random_.Chance(0.0005);
  if (throttled) ++chip->throttles;
  values[0] = Decimals(Percent(chip->duty), 100);
  values[1] = Decimals(Percent(chip->tensorcore), 100);
  values[2] = chip->used_bytes;
  values[3] = kHbmBytes;
  values[4] = Decimals(std::max(chip->power, 60.0), 1000);
  values[5] = std::round(chip->temperature);
  values[6] = throttled ? 1410 : (random_.Chance(0.03) ? 1965 : 1980);
  values[7] = chip->sent_bytes;
  values[8] = chip->throttles;
}

void FleetHost::FillStep(std::span<double> values) {
  const double progress = static_cast<double>(step_) + 1;
  const double warm_up = std::min(progress / 200, 1.0);
  const double seconds = step_seconds_ * (1 + 0.01 * random_.Noise());
  values[0] = Float32(1.8 + 9 * std::pow(progress, -0.35) + 0.03 * random_.Noise());
  values[1] = Float32(0.4 + 3 * std::pow(progress, -0.3) * (1 + 0.2 * random_.Noise()));
  values[2] = Float32(3e-4 * warm_up * (0.55 + 0.45 * std::cos(progress / 20000)));
  values[3] = seconds;
  values[4] = kBatchExamples / seconds;
  values[5] = static_cast<double>(step_) * kBatchExamples * kSequenceTokens;
}

void FleetHost::FillHost(std::span<double> values) {
  cpu_ = Revert(cpu_, 35, 0.2, 2 * random_.Noise());
  memory_ = Revert(memory_, 2.2e11, 0.01, 4e8 * random_.Noise());
  load_ = Revert(load_, cpu_ * 1.2, 1.0 / 60, 0.2 * random_.Noise());
  pressure_ = random_.Chance(0.01) ? 12 * random_.Uniform() : pressure_ * 0.9;
  received_ += std::floor(3e8 * (1 + 0.3 * random_.Noise()));
  sent_ += std::floor(2e8 * (1 + 0.3 * random_.Noise()));
  if (random_.Chance(0.1)) read_ += Round(4e8 * random_.Uniform(), 512);
  written_ += Round(1e6 * random_.Uniform(), 512);
  values[0] = Decimals(Percent(cpu_), 100);
  values[1] = Round(memory_, kPageBytes);
  values[2] = Round(kHostBytes - memory_, kPageBytes);
  values[3] = Decimals(std::max(load_, 0.0), 100);
  values[4] = received_;
  values[5] = sent_;
  values[6] = read_;
  values[7] = written_;
  values[8] = Decimals(pressure_, 100);
  values[9] = random_.Chance(0.02) ? Decimals(3 * random_.Uniform(), 100) : 0;
}

FleetRow FleetHost::NextRow() {
  FleetRow row;
  // A timer that fires up to 2 ms late; it keeps its grid.
  row.time_unix_ns = time_ns_ + static_cast<int64_t>(2e6 * random_.Uniform());
  time_ns_ += interval_ns_;
  // A checkpoint every ten minutes: the chips of all hosts wait for 20 s.
  const bool stalled = std::fmod(train_seconds_, 600) >= 580;
  if (!stalled) step_ = static_cast<int64_t>(train_seconds_ / step_seconds_);
  train_seconds_ += 1e-9 * static_cast<double>(interval_ns_);
  row.step = step_;
  std::span<double> values(row.values);
  for (Chip& chip : chips_) {
    FillChip(&chip, stalled, values.first<kChipMetrics>());
    values = values.subspan(kChipMetrics);
  }
  FillStep(values.first<kStepMetrics>());
  FillHost(values.subspan(kStepMetrics));
  return row;
}

}  // namespace tacho::bench
