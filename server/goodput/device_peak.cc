#include "server/goodput/device_peak.h"

#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"

namespace tacho::server::goodput {
namespace {

constexpr double kTera = 1e12;

constexpr DevicePeak kPeaks[] = {
    {"TPU v2", 46 * kTera / 2, true},
    {"TPU v3", 140 * kTera / 2, true},
    {"TPU v4 lite", 137 * kTera, true},
    {"TPU v4i", 137 * kTera, true},
    {"TPU v4", 275 * kTera, true},
    {"TPU v5 lite", 197 * kTera, true},
    {"TPU v5e", 197 * kTera, true},
    {"TPU v5", 459 * kTera, true},
    {"TPU v5p", 459 * kTera, true},
    {"TPU v6 lite", 920 * kTera, true},
    {"TPU v6e", 920 * kTera, true},
    {"TPU7", 2310 * kTera / 2, true},
    {"TPU7x", 2310 * kTera / 2, true},
    {"TPU8i", 1101 * kTera / 2, true},
    {"TPU8t", 996.1 * kTera, true},
    {"GB300", 2500 * kTera},
    {"GB200", 2500 * kTera},
    {"B300", 2250 * kTera},
    {"B200", 2250 * kTera},
    {"H200", 989 * kTera},
    {"H100 NVL", 835 * kTera},
    {"H100 PCIe", 756 * kTera},
    {"H100", 989 * kTera},
    {"H20", 148 * kTera},
    {"A100", 312 * kTera},
    {"A6000", 154.85 * kTera},
    {"L40S", 362 * kTera},
    {"MI250X", 191.5 * kTera},
    {"MI300X", 1300 * kTera},
    {"MI325X", 1300 * kTera},
    {"MI355X", 2500 * kTera},
};

// "A100" is in "NVIDIA A100-SXM4-80GB", not in "NVIDIA RTX A1000".
bool HasPart(const std::string& name, const std::string& part) {
  for (size_t at = name.find(part); at != std::string::npos; at = name.find(part, at + 1)) {
    const size_t end = at + part.size();
    if (end == name.size() || !absl::ascii_isdigit(static_cast<unsigned char>(name[end]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::Span<const DevicePeak> DevicePeaks() { return kPeaks; }

const DevicePeak* FindDevicePeak(absl::string_view device_kind) {
  const std::string kind = absl::AsciiStrToLower(absl::StripAsciiWhitespace(device_kind));
  for (const DevicePeak& peak : kPeaks) {
    const std::string known = absl::AsciiStrToLower(peak.kind);
    if (peak.exact ? kind == known : HasPart(kind, known)) return &peak;
  }
  return nullptr;
}

}  // namespace tacho::server::goodput
