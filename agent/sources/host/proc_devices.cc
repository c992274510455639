// /proc/net/dev and /proc/diskstats.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "agent/sources/host/host_parsers.h"
#include "agent/sources/host/host_text.h"
#include "client/ring/ring_text.h"

namespace tacho::agent {
namespace {

// One word of a device's line.
struct DeviceWord {
  size_t word;  // Behind the device's name, from 0.
  Metric metric;
  double factor = 1;
};

constexpr std::array<DeviceWord, 8> kNetwork = {{
    {0, {"host_network_receive_bytes_total", kCounterType, "By", "Received.", "device"}},
    {1, {"host_network_receive_packets_total", kCounterType, "1", "Packets received.", "device"}},
    {2,
     {"host_network_receive_errors_total", kCounterType, "1", "Bad packets received.", "device"}},
    {3, {"host_network_receive_drops_total", kCounterType, "1", "Good packets dropped.", "device"}},
    {8, {"host_network_transmit_bytes_total", kCounterType, "By", "Sent.", "device"}},
    {9, {"host_network_transmit_packets_total", kCounterType, "1", "Packets sent.", "device"}},
    {10, {"host_network_transmit_errors_total", kCounterType, "1", "Packets not sent.", "device"}},
    {11,
     {"host_network_transmit_drops_total", kCounterType, "1", "Packets dropped unsent.", "device"}},
}};
constexpr size_t kNetworkWords = 16;

constexpr double kSectorBytes = 512;  // In this file, whatever the disk's own sectors are.
constexpr double kMillisecond = 1e-3;
constexpr std::array<DeviceWord, 8> kDisk = {{
    {0, {"host_disk_reads_total", kCounterType, "1", "Reads completed.", "device"}},
    {2, {"host_disk_read_bytes_total", kCounterType, "By", "Read.", "device"}, kSectorBytes},
    {3,
     {"host_disk_read_seconds_total", kCounterType, "s", "Sum of the times of all reads.",
      "device"},
     kMillisecond},
    {4, {"host_disk_writes_total", kCounterType, "1", "Writes completed.", "device"}},
    {6, {"host_disk_write_bytes_total", kCounterType, "By", "Written.", "device"}, kSectorBytes},
    {7,
     {"host_disk_write_seconds_total", kCounterType, "s", "Sum of the times of all writes.",
      "device"},
     kMillisecond},
    {8,
     {"host_disk_requests_in_progress", kGaugeType, "1", "Requests not completed yet.", "device"}},
    {9,
     {"host_disk_busy_seconds_total", kCounterType, "s", "Time with a request in progress.",
      "device"},
     kMillisecond},
}};
constexpr size_t kDiskWords = 11;  // Kernels before 4.18.

constexpr std::array<absl::string_view, 13> kSkippedNetworkPrefixes = {
    {"veth", "docker", "br-", "cni", "cali", "cilium", "lxc", "flannel", "virbr", "ifb", "dummy",
     "tap", "vnet"}};
constexpr std::array<absl::string_view, 8> kSkippedDiskPrefixes = {
    {"loop", "ram", "zram", "dm-", "sr", "fd", "nbd", "drbd"}};

template <size_t N>
bool HasPrefix(absl::string_view name, const std::array<absl::string_view, N>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

bool IsLabel(absl::string_view name) {
  return !name.empty() && client::IsCleanText(std::string_view(name.data(), name.size()));
}

absl::string_view WithoutDigits(absl::string_view name) {
  while (!name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(name.back()))) {
    name.remove_suffix(1);
  }
  return name;
}

// "sda1", "vdb2", "nvme0n1p3", "mmcblk0p1": a partition adds a number to its disk's name, with a
// 'p' before it if that name ends in a digit.
bool IsPartition(absl::string_view name) {
  const absl::string_view stem = WithoutDigits(name);
  if (stem.size() == name.size() || stem.empty()) return false;
  if (absl::StartsWith(name, "nvme") || absl::StartsWith(name, "mmcblk")) {
    return stem.back() == 'p' && stem.size() >= 2 &&
           absl::ascii_isdigit(static_cast<unsigned char>(stem[stem.size() - 2]));
  }
  return absl::StartsWith(name, "sd") || absl::StartsWith(name, "vd") ||
         absl::StartsWith(name, "xvd") || absl::StartsWith(name, "hd");
}

template <size_t N>
bool AddDevice(absl::string_view device, const std::vector<absl::string_view>& words, size_t first,
               const std::array<DeviceWord, N>& metrics, Sample* out) {
  bool understood = false;
  for (const DeviceWord& entry : metrics) {
    const std::optional<double> value = Number(words[first + entry.word]);
    if (!value.has_value()) continue;
    out->Add(entry.metric, device, *value * entry.factor);
    understood = true;
  }
  return understood;
}

}  // namespace

bool ParseNetDev(absl::string_view text, Sample* out) {
  bool understood = false;
  for (absl::string_view line : Lines(text)) {
    // The number may follow the colon without a space; a name may hold a colon (an alias).
    const size_t colon = line.rfind(':');
    if (colon == absl::string_view::npos) continue;
    const absl::string_view device = absl::StripAsciiWhitespace(line.substr(0, colon));
    const std::vector<absl::string_view> words = Words(line.substr(colon + 1));
    if (words.size() < kNetworkWords || !IsLabel(device)) continue;
    understood = true;
    if (device == "lo" || HasPrefix(device, kSkippedNetworkPrefixes)) continue;
    AddDevice(device, words, 0, kNetwork, out);
  }
  return understood;
}

bool ParseDiskstats(absl::string_view text, Sample* out) {
  constexpr size_t kBeforeNumbers = 3;  // Major and minor number, name.
  bool understood = false;
  for (absl::string_view line : Lines(text)) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() < kBeforeNumbers + kDiskWords || !IsLabel(words[2])) continue;
    understood = true;
    if (HasPrefix(words[2], kSkippedDiskPrefixes) || IsPartition(words[2])) continue;
    AddDevice(words[2], words, kBeforeNumbers, kDisk, out);
  }
  return understood;
}

}  // namespace tacho::agent
