// The addresses of libtpu, and the chip of each of its devices.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/sources/chips/chip_holders.h"

namespace tacho::agent {

// The ports of TPU_RUNTIME_METRICS_PORTS: "8431,8432". Words that are no ports are left out, and so
// is what is beyond kMaxTpuPorts.
inline constexpr size_t kMaxTpuPorts = 64;
std::vector<uint16_t> ParseTpuPorts(absl::string_view text);

// Processes that share a list of ports: one job's part of this machine.
struct TpuGroup {
  std::vector<std::string> addresses;  // Empty: the job has switched libtpu's metrics off.
  std::set<uint32_t> chips;            // Numbers.
  std::vector<int> pids;               // Empty: no known process holds the chips.
};

struct TpuPlacesOptions {
  std::vector<std::string> addresses;  // As configured; empty: ports of this machine.
  std::string ports;                   // TPU_RUNTIME_METRICS_PORTS of the agent; may be empty.
};

// `devices`: which chip a device file belongs to.
std::vector<TpuGroup> GroupsOf(const TpuPlacesOptions& options, const ChipHolders& holders,
                               const std::map<std::string, uint32_t>& devices,
                               const std::set<uint32_t>& chips);

// The runtime's numbers of devices are those of the whole slice: neither contiguous nor those of
// the device files, and never compared with them. But in a group their order is that of the chips.
struct TpuPlace {
  std::string chip;  // The label; "device N" where the chip is not known.
  std::string core;  // Empty where a chip is one device.
  bool known = false;
};
class TpuDevices {
 public:
  // `devices`: as many for each chip as the runtime counts in this generation; some metrics of
  // chips with two have one value a chip all the same.
  std::map<int64_t, TpuPlace> Place(const std::set<int64_t>& ids, const std::set<uint32_t>& chips,
                                    int devices_per_chip);

 private:
  std::map<int64_t, TpuPlace> known_;  // Places when all were last there.
  std::set<uint32_t> known_chips_;
};

}  // namespace tacho::agent
