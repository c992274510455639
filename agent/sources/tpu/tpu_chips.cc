#include "agent/sources/tpu/tpu_chips.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kGoogle = 0x1ae0;

constexpr TpuGeneration kGenerations[] = {
    {"v2", "TPU v2", 0x0027, 0x004e, 2, 2, 16e9, 716e9, 46e12},
    // Where the subsystem says nothing it is one of these, to JAX too.
    {"v3", "TPU v3", 0x0027, 0, 2, 2, 34.4e9, 825e9, 140e12},
    {"v4", "TPU v4", 0x005e, 0, 2, 1, 34.4e9, 1230e9, 275e12},
    {"v5e", "TPU v5 lite", 0x0063, 0, 1, 1, 17.2e9, 820e9, 197e12},
    {"v5p", "TPU v5", 0x0062, 0, 2, 1, 103e9, 2460e9, 459e12},
    {"v6e", "TPU v6 lite", 0x006f, 0, 1, 1, 34.4e9, 1640e9, 920e12},
    {"7x", "TPU7x", 0x0076, 0, 2, 2, 206e9, 7400e9, 2310e12},
    {"8i", "TPU8i", 0x0083, 0, 2, 2, 309e9, 8600e9, 1101e12},
    {"8t", "TPU8t", 0x007c, 0, 1, 1, 231e9, 6400e9, 996.1e12},
};

// A file with one hexadecimal number.
std::optional<uint32_t> HexOf(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  uint32_t number = 0;
  if (!(file >> word) || !absl::SimpleHexAtoi(word, &number)) return std::nullopt;
  return number;
}

// "/dev/vfio/3" or "/dev/accel0"; empty if the function has neither.
std::string DeviceFileOf(const fs::path& function, const std::string& dev) {
  std::error_code error;
  fs::directory_iterator entry(function / "accel", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (absl::StartsWith(name, "accel")) return absl::StrCat(dev, "/", name);
  }
  const fs::path group = fs::read_symlink(function / "iommu_group", error);
  return error ? "" : absl::StrCat(dev, "/vfio/", group.filename().string());
}

// The number at the end of a chip's first device file; chips without one come last.
uint64_t NumberOf(const TpuChip& chip) {
  if (chip.devices.empty()) return UINT64_MAX;
  const std::string& path = chip.devices.front();
  const size_t digits = path.find_last_not_of("0123456789") + 1;
  uint64_t number = UINT64_MAX;
  if (!absl::SimpleAtoi(path.substr(digits), &number)) return UINT64_MAX;
  return number;
}

}  // namespace

const TpuGeneration* FindTpuGeneration(uint16_t device, uint16_t subsystem) {
  for (const TpuGeneration& generation : kGenerations) {
    if (generation.device == device &&
        (generation.subsystem == 0 || generation.subsystem == subsystem)) {
      return &generation;
    }
  }
  return nullptr;
}

std::vector<TpuChip> FindTpuChips(const std::string& sys, const std::string& dev) {
  std::vector<fs::path> functions;
  std::error_code error;
  fs::directory_iterator entry(sys + "/bus/pci/devices", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    functions.push_back(entry->path());
  }
  std::sort(functions.begin(), functions.end());
  std::map<std::string, TpuChip> chips;
  for (const fs::path& function : functions) {
    if (HexOf(function / "vendor") != kGoogle) continue;
    const auto device = static_cast<uint16_t>(HexOf(function / "device").value_or(0));
    const auto subsystem = static_cast<uint16_t>(HexOf(function / "subsystem_device").value_or(0));
    const TpuGeneration* const generation = FindTpuGeneration(device, subsystem);
    if (generation == nullptr) continue;
    const std::string address = function.filename().string();
    TpuChip& chip = chips[address.substr(0, address.rfind('.'))];
    chip.pci = address.substr(0, address.rfind('.'));
    chip.generation = generation;
    std::string file = DeviceFileOf(function, dev);
    if (!file.empty()) chip.devices.push_back(std::move(file));
  }
  std::vector<TpuChip> found;
  for (auto& [pci, chip] : chips) found.push_back(std::move(chip));
  std::stable_sort(found.begin(), found.end(),
                   [](const TpuChip& a, const TpuChip& b) { return NumberOf(a) < NumberOf(b); });
  return found;
}

}  // namespace tacho::agent
