// The TPU chips of a machine, from sysfs, and what is known of each generation.
//
// Identifiers: jax, jax/_src/hardware_utils.py, and tpu-info, tpu_info/device.py. Figures: jax,
// jax/_src/tpu_info.py: of a whole chip, dense, bfloat16.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::agent {

struct TpuGeneration {
  const char* name;      // "v5p"
  const char* kind;      // As JAX calls the device: "TPU v5p".
  uint16_t device;       // PCI.
  uint16_t subsystem;    // PCI; 0: any.
  int cores;             // Tensor cores of a chip.
  int devices_per_chip;  // As the runtime counts: two cores may be one device.
  double hbm_bytes;
  double bytes_per_second;
  double flops_per_second;
};

// nullptr: not a TPU. Google's other PCI functions (gVNIC, NVMe) have the same vendor.
const TpuGeneration* FindTpuGeneration(uint16_t device, uint16_t subsystem);

struct TpuChip {
  std::string pci;  // "0000:00:05", without the function.
  const TpuGeneration* generation = nullptr;
  std::vector<std::string> devices;  // Paths: one for each PCI function that has one.
};

// In the order of their device files' numbers, as the tools of the vendor have it. Empty if there
// are none, or no sysfs.
std::vector<TpuChip> FindTpuChips(const std::string& sys, const std::string& dev);

}  // namespace tacho::agent
