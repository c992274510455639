// Reads one GPU through NVML.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "agent/sources/gpu/gpu_values.h"
#include "agent/sources/gpu/nvml_library.h"

namespace tacho::agent {

struct GpuReaderOptions {
  bool gpm = true;               // Performance monitors, where the GPU has them.
  bool pcie_throughput = false;  // If not: by calls that block for 20 ms each.
};

// Texts and numbers of a device. Calls into the driver.
GpuIdentity IdentifyGpu(const NvmlLibrary& library, nvml::Device device, uint32_t index);

// Figures that a device refuses as not supported, or not permitted, are not asked for again: a new
// reader asks again. One thread at a time; any call may block for as long as the driver likes.
class GpuReader {
 public:
  // Only this many processes of one GPU are read.
  static constexpr size_t kMaxProcesses = 1024;
  // Between two looks at the performance monitors; NVML measures nothing in less.
  static constexpr absl::Duration kMinGpmSpan = absl::Milliseconds(100);

  GpuReader(std::shared_ptr<const NvmlLibrary> library, nvml::Device device,
            GpuReaderOptions options);
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;
  ~GpuReader();

  // `now` is a steady clock's.
  GpuReading Read(absl::Time now);

 private:
  // Whether the call gave something. Its refusals are remembered under `value`.
  template <typename Function, typename... Arguments>
  bool Call(GpuValue value, Function* function, Arguments... arguments);
  bool Took(GpuValue value, int result);
  bool IsOff(GpuValue value) const;

  void ReadUse();
  void ReadMemory();
  void ReadPowerAndHeat();
  void ReadClocks();
  void ReadFields();
  void Ask(std::vector<nvml::FieldValue>* fields, const std::vector<GpuValue>& values);
  // As Call(), for a value that the first way has not given.
  template <typename Function, typename... Arguments>
  bool Instead(GpuValue value, Function* function, Arguments... arguments);
  void ReadWhatFieldsLack();
  void ReadLinks();
  void ReadProcesses();
  void ReadPcie();
  bool StartGpm();
  void ReadGpm(absl::Time now);
  void TakeGpm();
  void Finish();

  const std::shared_ptr<const NvmlLibrary> library_;
  const nvml::Functions& calls_;
  const nvml::Device device_;
  const GpuReaderOptions options_;
  std::array<int, kGpuValues> refused_ = {};  // Results.
  std::array<bool, kGpuValues> no_instead_ = {};
  GpuReading reading_;
  std::vector<nvml::ProcessInfo> processes_;
  bool gpm_tried_ = false;
  std::array<nvml::GpmSample, 2> gpm_ = {};  // The older one first; null without monitors.
  absl::Time gpm_time_ = absl::InfinitePast();
};

}  // namespace tacho::agent
