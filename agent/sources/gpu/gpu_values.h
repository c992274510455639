// The values of one GPU at one moment, in NVML's units.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tacho::agent {

enum class GpuValue : uint8_t {
  kUtilization,        // Per cent.
  kMemoryUtilization,  // Per cent of the time, not of the memory.
  kMemoryTotal,        // By, as the next three.
  kMemoryUsed,
  kMemoryFree,
  kMemoryReserved,
  kPower,              // mW
  kPowerLimit,         // mW
  kEnergy,             // mJ since the driver was loaded.
  kTemperature,        // °C
  kMemoryTemperature,  // °C
  kSmClock,            // MHz, as the next two.
  kMemoryClock,
  kSmClockMax,
  kClockReasons,      // Bits.
  kPerformanceState,  // 0 is the fastest.
  kEccCorrected,      // Since the driver was loaded.
  kEccUncorrected,
  kRowsRemapped,  // The next two together.
  kRowsRemappedCorrected,
  kRowsRemappedUncorrected,
  kRowRemapPending,  // 0 or 1.
  kRowRemapFailed,   // 0 or 1.
  kPagesRetiredSingle,
  kPagesRetiredDouble,
  kPagesPending,
  kPcieReplays,
  kPcieTransmit,  // By/s
  kPcieReceive,
  kLinkErrors,  // Sum of the next three, or of the four after them where those are missing.
  kLinkReplays,
  kLinkRecoveries,
  kLinkCrcErrors,
  kLinkFlitCrcErrors,  // Over all links, of GPUs before Ampere, as the next three.
  kLinkDataCrcErrors,
  kLinkReplaysTotal,
  kLinkRecoveriesTotal,
  kLinkTransmitted,  // KiB of data, over all links; the sum of both is kLinkTraffic.
  kLinkReceived,
  kLinkTraffic,
  kLinks,  // Links that the GPU has.
  kLinksUp,
  kViolationPower,  // ns below the clock that was asked for, as the next five.
  kViolationThermal,
  kViolationSyncBoost,
  kViolationBoardLimit,
  kViolationLowUtilization,
  kViolationReliability,
  kRecoveryAction,  // 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset, 5 recover IMEX.
  kProcesses,
  kMigMode,         // 0 or 1.
  kGraphicsActive,  // Per cent, of the performance monitors, as the next seven.
  kSmActive,
  kSmOccupancy,
  kTensorActive,
  kDramActive,
  kFp64Active,
  kFp32Active,
  kFp16Active,
  kLinkReceiveRate,   // MiB/s
  kLinkTransmitRate,  // MiB/s
  kCount,
};

inline constexpr size_t kGpuValues = static_cast<size_t>(GpuValue::kCount);

class GpuValues {
 public:
  const std::optional<double>& Get(GpuValue value) const { return values_[Index(value)]; }
  void Set(GpuValue value, double number) { values_[Index(value)] = number; }
  // Adds to what there is, or sets.
  void Add(GpuValue value, double number) {
    std::optional<double>& there = values_[Index(value)];
    there = there.value_or(0) + number;
  }

 private:
  static size_t Index(GpuValue value) { return static_cast<size_t>(value); }

  std::array<std::optional<double>, kGpuValues> values_;
};

// The facts that never change while a GPU is there. A text that the driver does not report is
// empty.
struct GpuIdentity {
  uint32_t index = 0;             // NVML's: shifts when another GPU goes.
  std::optional<uint32_t> minor;  // N of /dev/nvidiaN.
  std::string pci;                // "00000000:3B:00.0", as nvidia-smi has it.
  std::string uuid;
  std::string name;
  std::string serial;
};

struct GpuReading {
  GpuValues values;
  // The answer of NVML if it was about the GPU as a whole: lost, to be reset, a driver that is
  // gone; else 0. Values that were read before are there.
  int trouble = 0;
  std::vector<uint32_t> pids;  // The compute processes on it.
  // How many values this GPU does not report until it is found anew, by reason.
  uint32_t not_supported = 0;
  uint32_t no_permission = 0;
};

}  // namespace tacho::agent
