// Two tables, a row a metric: the agent's names and dcgm-exporter's, over the same readings.
#include "agent/sources/gpu/gpu_metrics.h"

#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

constexpr double kPercent = 0.01;
constexpr double kMilli = 1e-3;
constexpr double kNano = 1e-9;
constexpr double kMega = 1e6;
constexpr double kKibi = 1024;
constexpr double kMebi = 1024.0 * 1024.0;
constexpr double kToMebi = 1 / kMebi;

constexpr Metric kThrottledSeconds = {
    "chip_throttled_seconds_total", kCounterType, "s",
    "Time for which the clock was held below what was asked for, by why."};
constexpr Metric kXidErrors = {"chip_xid_errors_total", kCounterType, "1",
                               "XID errors that the driver has reported since the agent started."};
constexpr Metric kNotTold = {
    "chip_values_not_told", kGaugeType, "1",
    "Number of values that the driver does not report for this chip, by reason."};
constexpr Metric kDcgmXid = {"DCGM_FI_DEV_XID_ERRORS", kGaugeType, "1",
                             "Number of the last XID error; 0: none."};

constexpr GpuMetric kTacho[] = {
    {GpuValue::kUtilization,
     {"chip_duty_cycle_ratio", kGaugeType, "1", "Share of the time in which a kernel ran."},
     kPercent},
    {GpuValue::kMemoryUtilization,
     {"chip_hbm_busy_ratio", kGaugeType, "1", "Share of the time in which memory was accessed."},
     kPercent},
    {GpuValue::kMemoryUsed,
     {"chip_hbm_used_bytes", kGaugeType, "By", "Device memory that programs use."}},
    {GpuValue::kMemoryTotal, {"chip_hbm_total_bytes", kGaugeType, "By", "Device memory."}},
    {GpuValue::kMemoryReserved,
     {"chip_hbm_reserved_bytes", kGaugeType, "By",
      "Device memory that the driver keeps for itself."}},
    {GpuValue::kPower, {"chip_power_watts", kGaugeType, "W", "Power drawn."}, kMilli},
    {GpuValue::kPowerLimit,
     {"chip_power_limit_watts", kGaugeType, "W", "Power limit in force."},
     kMilli},
    {GpuValue::kEnergy,
     {"chip_energy_joules_total", kCounterType, "J", "Energy used since the driver was loaded."},
     kMilli},
    {GpuValue::kTemperature,
     {"chip_temperature_celsius", kGaugeType, "Cel", "Temperature of the chip."}},
    {GpuValue::kMemoryTemperature,
     {"chip_memory_temperature_celsius", kGaugeType, "Cel", "Temperature of its memory."}},
    {GpuValue::kSmClock, {"chip_clock_hertz", kGaugeType, "Hz", "Clock of the cores."}, kMega},
    {GpuValue::kSmClockMax,
     {"chip_clock_max_hertz", kGaugeType, "Hz", "Highest clock of the cores."},
     kMega},
    {GpuValue::kMemoryClock,
     {"chip_memory_clock_hertz", kGaugeType, "Hz", "Clock of the memory."},
     kMega},
    {GpuValue::kClockReasons,
     {"chip_throttle_reasons", kGaugeType, "1", "Why the clock is what it is: NVML's bits."}},
    {GpuValue::kPerformanceState,
     {"chip_performance_state", kGaugeType, "1", "0 is the fastest, 15 the slowest."}},
    {GpuValue::kViolationPower, kThrottledSeconds, kNano, "power"},
    {GpuValue::kViolationThermal, kThrottledSeconds, kNano, "thermal"},
    {GpuValue::kViolationSyncBoost, kThrottledSeconds, kNano, "sync_boost"},
    {GpuValue::kViolationBoardLimit, kThrottledSeconds, kNano, "board_limit"},
    {GpuValue::kViolationLowUtilization, kThrottledSeconds, kNano, "low_utilization"},
    {GpuValue::kViolationReliability, kThrottledSeconds, kNano, "reliability"},
    {GpuValue::kEccCorrected,
     {"chip_ecc_corrected_total", kCounterType, "1",
      "Memory errors corrected since the driver was loaded."}},
    {GpuValue::kEccUncorrected,
     {"chip_ecc_uncorrected_total", kCounterType, "1",
      "Memory errors that could not be corrected since the driver was loaded."}},
    {GpuValue::kRowsRemapped,
     {"chip_remapped_rows_total", kCounterType, "1", "Memory rows that were replaced, ever."}},
    {GpuValue::kRowRemapPending,
     {"chip_row_remap_pending", kGaugeType, "1", "1 if a row is replaced at the next reset."}},
    {GpuValue::kRowRemapFailed,
     {"chip_row_remap_failed", kGaugeType, "1",
      "1 if a row could not be replaced: the GPU is due."}},
    {GpuValue::kPagesRetiredSingle,
     {"chip_retired_pages_total", kCounterType, "1",
      "Memory pages taken out of use, ever, by why."},
     1,
     "single_bit"},
    {GpuValue::kPagesRetiredDouble,
     {"chip_retired_pages_total", kCounterType, "1",
      "Memory pages taken out of use, ever, by why."},
     1,
     "double_bit"},
    {GpuValue::kPcieReplays,
     {"chip_pcie_replays_total", kCounterType, "1", "PCIe packets that were sent again."}},
    {GpuValue::kPcieTransmit,
     {"chip_pcie_transmit_bytes_per_second", kGaugeType, "By/s", "Sent over PCIe."}},
    {GpuValue::kPcieReceive,
     {"chip_pcie_receive_bytes_per_second", kGaugeType, "By/s", "Received over PCIe."}},
    {GpuValue::kLinkErrors,
     {"chip_link_errors_total", kCounterType, "1",
      "Replays, recoveries and CRC errors of NVLinks."}},
    {GpuValue::kLinkTransmitted,
     {"chip_link_transmit_bytes_total", kCounterType, "By", "Data sent over NVLinks."},
     kKibi},
    {GpuValue::kLinkReceived,
     {"chip_link_receive_bytes_total", kCounterType, "By", "Data received over NVLinks."},
     kKibi},
    {GpuValue::kLinks, {"chip_links", kGaugeType, "1", "NVLinks that the GPU has."}},
    {GpuValue::kLinksUp, {"chip_links_up", kGaugeType, "1", "NVLinks that are up."}},
    {GpuValue::kRecoveryAction,
     {"chip_recovery_action", kGaugeType, "1",
      "What the driver asks for: 0 nothing, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset, "
      "5 recover IMEX."}},
    {GpuValue::kProcesses,
     {"chip_processes", kGaugeType, "1", "Processes that compute on the chip."}},
    {GpuValue::kMigMode, {"chip_mig_mode", kGaugeType, "1", "1 if the GPU is partitioned (MIG)."}},
    {GpuValue::kTensorActive,
     {"chip_tensor_active_ratio", kGaugeType, "1", "Share of cycles in which tensor cores worked."},
     kPercent},
    {GpuValue::kGraphicsActive,
     {"chip_engine_active_ratio", kGaugeType, "1", "Share of the time in which the engine worked."},
     kPercent},
    {GpuValue::kSmActive,
     {"chip_sm_active_ratio", kGaugeType, "1", "Share of multiprocessors that had work."},
     kPercent},
    {GpuValue::kSmOccupancy,
     {"chip_sm_occupancy_ratio", kGaugeType, "1", "Warps in residence by the most that fit."},
     kPercent},
    {GpuValue::kDramActive,
     {"chip_hbm_bandwidth_ratio", kGaugeType, "1", "Memory bandwidth used, of the highest."},
     kPercent},
    {GpuValue::kFp64Active,
     {"chip_fp64_active_ratio", kGaugeType, "1", "Share of cycles in which FP64 units worked."},
     kPercent},
    {GpuValue::kFp32Active,
     {"chip_fp32_active_ratio", kGaugeType, "1", "Share of cycles in which FP32 units worked."},
     kPercent},
    {GpuValue::kFp16Active,
     {"chip_fp16_active_ratio", kGaugeType, "1", "Share of cycles in which FP16 units worked."},
     kPercent},
    {GpuValue::kLinkTransmitRate,
     {"chip_link_transmit_bytes_per_second", kGaugeType, "By/s", "Sent over NVLinks."},
     kMebi},
    {GpuValue::kLinkReceiveRate,
     {"chip_link_receive_bytes_per_second", kGaugeType, "By/s", "Received over NVLinks."},
     kMebi},
};

constexpr GpuMetric kDcgm[] = {
    {GpuValue::kSmClock, {"DCGM_FI_DEV_SM_CLOCK", kGaugeType, "MHz", "SM clock."}},
    {GpuValue::kMemoryClock, {"DCGM_FI_DEV_MEM_CLOCK", kGaugeType, "MHz", "Memory clock."}},
    {GpuValue::kSmClockMax, {"DCGM_FI_DEV_MAX_SM_CLOCK", kGaugeType, "MHz", "Highest SM clock."}},
    {GpuValue::kTemperature, {"DCGM_FI_DEV_GPU_TEMP", kGaugeType, "Cel", "GPU temperature."}},
    {GpuValue::kMemoryTemperature,
     {"DCGM_FI_DEV_MEMORY_TEMP", kGaugeType, "Cel", "Memory temperature."}},
    {GpuValue::kPower, {"DCGM_FI_DEV_POWER_USAGE", kGaugeType, "W", "Power draw."}, kMilli},
    {GpuValue::kPowerLimit,
     {"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", kGaugeType, "W", "Power limit in force."},
     kMilli},
    {GpuValue::kEnergy,
     {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", kCounterType, "mJ", "Energy since boot."}},
    {GpuValue::kPcieReplays,
     {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", kCounterType, "1", "PCIe retries."}},
    {GpuValue::kUtilization, {"DCGM_FI_DEV_GPU_UTIL", kGaugeType, "%", "GPU utilization."}},
    {GpuValue::kMemoryUtilization,
     {"DCGM_FI_DEV_MEM_COPY_UTIL", kGaugeType, "%", "Memory utilization."}},
    {GpuValue::kMemoryFree,
     {"DCGM_FI_DEV_FB_FREE", kGaugeType, "MiBy", "Frame buffer free."},
     kToMebi},
    {GpuValue::kMemoryUsed,
     {"DCGM_FI_DEV_FB_USED", kGaugeType, "MiBy", "Frame buffer used."},
     kToMebi},
    {GpuValue::kMemoryReserved,
     {"DCGM_FI_DEV_FB_RESERVED", kGaugeType, "MiBy", "Frame buffer reserved."},
     kToMebi},
    {GpuValue::kMemoryTotal,
     {"DCGM_FI_DEV_FB_TOTAL", kGaugeType, "MiBy", "Frame buffer."},
     kToMebi},
    {GpuValue::kClockReasons,
     {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", kGaugeType, "1", "Clock event reasons, bits."}},
    {GpuValue::kViolationPower,
     {"DCGM_FI_DEV_POWER_VIOLATION", kCounterType, "ns", "Throttled for power."}},
    {GpuValue::kViolationThermal,
     {"DCGM_FI_DEV_THERMAL_VIOLATION", kCounterType, "ns", "Throttled for heat."}},
    {GpuValue::kViolationSyncBoost,
     {"DCGM_FI_DEV_SYNC_BOOST_VIOLATION", kCounterType, "ns", "Throttled by sync boost."}},
    {GpuValue::kViolationBoardLimit,
     {"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", kCounterType, "ns", "Throttled by the board's limit."}},
    {GpuValue::kViolationLowUtilization,
     {"DCGM_FI_DEV_LOW_UTIL_VIOLATION", kCounterType, "ns", "Throttled for low utilization."}},
    {GpuValue::kViolationReliability,
     {"DCGM_FI_DEV_RELIABILITY_VIOLATION", kCounterType, "ns", "Throttled for reliability."}},
    {GpuValue::kEccCorrected,
     {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", kCounterType, "1",
      "Single-bit errors since the driver's load."}},
    {GpuValue::kEccUncorrected,
     {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", kCounterType, "1",
      "Double-bit errors since the driver's load."}},
    {GpuValue::kPagesRetiredSingle,
     {"DCGM_FI_DEV_RETIRED_SBE", kCounterType, "1", "Pages retired for single-bit errors."}},
    {GpuValue::kPagesRetiredDouble,
     {"DCGM_FI_DEV_RETIRED_DBE", kCounterType, "1", "Pages retired for double-bit errors."}},
    {GpuValue::kPagesPending,
     {"DCGM_FI_DEV_RETIRED_PENDING", kGaugeType, "1", "Pages to be retired."}},
    {GpuValue::kRowsRemappedUncorrected,
     {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", kCounterType, "1",
      "Rows remapped, uncorrectable."}},
    {GpuValue::kRowsRemappedCorrected,
     {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", kCounterType, "1", "Rows remapped, correctable."}},
    {GpuValue::kRowRemapFailed,
     {"DCGM_FI_DEV_ROW_REMAP_FAILURE", kGaugeType, "1", "Whether remapping failed."}},
    {GpuValue::kLinkTraffic,
     {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", kCounterType, "KiBy", "NVLink data, both directions."}},
    {GpuValue::kLinkFlitCrcErrors,
     {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", kCounterType, "1",
      "NVLink flit CRC errors."}},
    {GpuValue::kLinkDataCrcErrors,
     {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", kCounterType, "1",
      "NVLink data CRC errors."}},
    {GpuValue::kLinkReplaysTotal,
     {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", kCounterType, "1", "NVLink replays."}},
    {GpuValue::kLinkRecoveriesTotal,
     {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", kCounterType, "1", "NVLink recoveries."}},
    {GpuValue::kGraphicsActive,
     {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", kGaugeType, "1", "Ratio of time the engine is active."},
     kPercent},
    {GpuValue::kSmActive,
     {"DCGM_FI_PROF_SM_ACTIVE", kGaugeType, "1", "Ratio of cycles an SM has a warp."},
     kPercent},
    {GpuValue::kSmOccupancy,
     {"DCGM_FI_PROF_SM_OCCUPANCY", kGaugeType, "1", "Ratio of warps resident on an SM."},
     kPercent},
    {GpuValue::kTensorActive,
     {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", kGaugeType, "1",
      "Ratio of cycles tensor cores are active."},
     kPercent},
    {GpuValue::kDramActive,
     {"DCGM_FI_PROF_DRAM_ACTIVE", kGaugeType, "1", "Ratio of cycles memory is active."},
     kPercent},
    {GpuValue::kFp64Active,
     {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", kGaugeType, "1", "Ratio of cycles FP64 pipes are active."},
     kPercent},
    {GpuValue::kFp32Active,
     {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", kGaugeType, "1", "Ratio of cycles FP32 pipes are active."},
     kPercent},
    {GpuValue::kFp16Active,
     {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", kGaugeType, "1", "Ratio of cycles FP16 pipes are active."},
     kPercent},
    {GpuValue::kPcieTransmit,
     {"DCGM_FI_PROF_PCIE_TX_BYTES", kGaugeType, "By/s", "Sent over PCIe."}},
    {GpuValue::kPcieReceive,
     {"DCGM_FI_PROF_PCIE_RX_BYTES", kGaugeType, "By/s", "Received over PCIe."}},
};

void AddAll(std::span<const GpuMetric> metrics, const GpuReading& reading, const Labels& labels,
            Sample* sample) {
  for (const GpuMetric& row : metrics) {
    const auto& value = reading.values.Get(row.value);
    if (!value.has_value()) continue;
    Labels all = labels;
    if (row.reason != nullptr) all.emplace_back("reason", row.reason);
    sample->Add(row.metric, std::move(all), *value * row.factor);
  }
}

}  // namespace

const Metric kChipState = {"chip_state", kGaugeType, "1",
                           "1 for the state that the chip is in, 0 for the others."};
const Metric kChipInfo = {"chip_info", kGaugeType, "1", "Always 1; the labels say what it is."};
const Metric kChipsExpected = {"host_chips_expected", kGaugeType, "1",
                               "Chips that the machine should have."};
const Metric kChipsPresent = {"host_chips_present", kGaugeType, "1", "Chips that can be used now."};

std::span<const GpuMetric> TachoGpuMetrics() { return kTacho; }
std::span<const GpuMetric> DcgmGpuMetrics() { return kDcgm; }

Labels DcgmLabels(const GpuChip& chip, const GpuNames& names) {
  const GpuIdentity& gpu = chip.identity;
  return {{"chip", chip.chip},
          {"gpu", absl::StrCat(gpu.index)},
          {"UUID", gpu.uuid},
          {"pci_bus_id", gpu.pci},
          {"device", gpu.minor.has_value() ? absl::StrCat("nvidia", *gpu.minor) : ""},
          {"modelName", gpu.name},
          {names.dcgm_host_label, names.host},
          {"DCGM_FI_DRIVER_VERSION", names.driver}};
}

void AddReading(const GpuChip& chip, const GpuReading& reading, const GpuNames& names,
                Sample* sample) {
  const Labels own = {{"chip", chip.chip}};
  if (names.tacho) {
    AddAll(kTacho, reading, own, sample);
    sample->Add(kXidErrors, own, chip.xids);
  }
  if (names.dcgm) {
    const Labels labels = DcgmLabels(chip, names);
    AddAll(kDcgm, reading, labels, sample);
    sample->Add(kDcgmXid, labels, chip.last_xid);
  }
  const auto not_told = [&](const char* why, uint32_t count) {
    sample->Add(kNotTold, {{"chip", chip.chip}, {"reason", why}}, count);
  };
  not_told("not_supported", reading.not_supported);
  not_told("no_permission", reading.no_permission);
}

}  // namespace tacho::agent
