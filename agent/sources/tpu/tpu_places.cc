#include "agent/sources/tpu/tpu_places.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tacho::agent {
namespace {

constexpr char kPortsVariable[] = "TPU_RUNTIME_METRICS_PORTS";
constexpr uint16_t kFirstPort = 8431;

std::vector<std::string> LocalAddresses(const std::vector<uint16_t>& ports) {
  std::vector<std::string> addresses;
  for (const uint16_t port : ports) addresses.push_back(absl::StrCat("localhost:", port));
  return addresses;
}

std::vector<std::string> DefaultAddresses(const TpuPlacesOptions& options, size_t chips) {
  if (!options.ports.empty()) return LocalAddresses(ParseTpuPorts(options.ports));
  std::vector<uint16_t> ports;
  for (size_t i = 0; i < std::min(std::max<size_t>(chips, 1), kMaxTpuPorts); ++i) {
    ports.push_back(static_cast<uint16_t>(kFirstPort + i));
  }
  return LocalAddresses(ports);
}

}  // namespace

std::vector<uint16_t> ParseTpuPorts(absl::string_view text) {
  std::vector<uint16_t> ports;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    uint32_t port = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(word), &port)) continue;
    if (port == 0 || port > UINT16_MAX || ports.size() >= kMaxTpuPorts) continue;
    ports.push_back(static_cast<uint16_t>(port));
  }
  return ports;
}

std::vector<TpuGroup> GroupsOf(const TpuPlacesOptions& options, const ChipHolders& holders,
                               const std::map<std::string, uint32_t>& devices,
                               const std::set<uint32_t>& chips) {
  std::map<std::vector<std::string>, TpuGroup> groups;
  for (const ChipHolder& holder : holders.holders) {
    std::vector<std::string> addresses = options.addresses;
    if (addresses.empty()) {
      const bool says =
          holder.environment.has_value() && holder.environment->contains(kPortsVariable);
      // Set and empty switches the metrics off.
      addresses = says ? LocalAddresses(ParseTpuPorts(holder.environment->at(kPortsVariable)))
                       : DefaultAddresses(options, chips.size());
    }
    TpuGroup& group = groups[addresses];
    group.addresses = addresses;
    group.pids.push_back(holder.pid);
    for (const std::string& device : holder.devices) {
      const auto chip = devices.find(device);
      if (chip != devices.end()) group.chips.insert(chip->second);
    }
  }
  if (groups.empty()) {
    std::vector<std::string> addresses = options.addresses;
    if (addresses.empty()) addresses = DefaultAddresses(options, chips.size());
    groups[addresses] = {addresses, chips, {}};
  }
  std::vector<TpuGroup> all;
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  return all;
}

std::map<int64_t, TpuPlace> TpuDevices::Place(const std::set<int64_t>& ids,
                                              const std::set<uint32_t>& chips,
                                              int devices_per_chip) {
  std::map<int64_t, TpuPlace> places;
  const std::vector<uint32_t> order(chips.begin(), chips.end());
  const auto each = static_cast<size_t>(std::max(devices_per_chip, 1));
  const bool all = !ids.empty() && ids.size() == order.size() * each;
  const bool one_a_chip = !ids.empty() && ids.size() == order.size();
  size_t i = 0;
  for (const int64_t id : ids) {
    TpuPlace& place = places[id];
    if (all || one_a_chip) {
      place.chip = absl::StrCat(order[all ? i / each : i]);
      if (all && each > 1) place.core = absl::StrCat(i % each);
      place.known = true;
    } else if (const auto known = known_.find(id); known != known_.end() && known_chips_ == chips) {
      place = known->second;
    } else {
      place.chip = absl::StrCat("device ", id);
    }
    ++i;
  }
  if (all) {
    known_ = places;
    known_chips_ = chips;
  }
  return places;
}

}  // namespace tacho::agent
