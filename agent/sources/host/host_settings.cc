// Settings and slow figures of a machine: huge pages, the clock, NUMA, throttling by heat.
#include "agent/sources/host/host_settings.h"

#include <sys/timex.h>

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/sources/host/host_text.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

constexpr double kKibibyte = 1024;
// More nodes or packages no machine has.
constexpr int kMaxNodes = 64;
constexpr int kMaxCpus = 4096;

constexpr Metric kHugePages = {"host_transparent_huge_pages", kGaugeType, "1",
                               "1 for the setting that is in force, 0 for the others.", "setting"};
constexpr Metric kSynchronized = {
    "host_clock_synchronized", kGaugeType, "1",
    "Whether the kernel knows of a time service that keeps its clock: 1 or 0."};
constexpr Metric kOffset = {"host_clock_offset_seconds", kGaugeType, "s",
                            "By how much the time service is correcting the clock."};
constexpr Metric kMaxError = {"host_clock_max_error_seconds", kGaugeType, "s",
                              "By how much the clock may be wrong at most."};
constexpr Metric kEstimatedError = {"host_clock_estimated_error_seconds", kGaugeType, "s",
                                    "By how much the time service thinks it is wrong."};
constexpr Metric kFrequency = {"host_clock_frequency_ratio", kGaugeType, "1",
                               "Correction of the clock's speed."};
constexpr std::array<KeyedMetric, 4> kNodeMemory = {{
    {"MemTotal:",
     {"host_numa_memory_total_bytes", kGaugeType, "By", "Memory of the node.", "node"}},
    {"MemFree:", {"host_numa_memory_free_bytes", kGaugeType, "By", "Memory unused.", "node"}},
    {"FilePages:",
     {"host_numa_memory_file_bytes", kGaugeType, "By", "Memory caching files.", "node"}},
    {"AnonPages:", {"host_numa_memory_anonymous_bytes", kGaugeType, "By", "Of programs.", "node"}},
}};
constexpr std::array<KeyedMetric, 4> kNumastat = {{
    {"numa_hit",
     {"host_numa_hit_bytes_total", kCounterType, "By", "Allocated where wanted.", "node"}},
    {"numa_miss",
     {"host_numa_miss_bytes_total", kCounterType, "By", "Allocated here, wanted elsewhere.",
      "node"}},
    {"numa_foreign",
     {"host_numa_foreign_bytes_total", kCounterType, "By", "Wanted here, allocated elsewhere.",
      "node"}},
    {"other_node",
     {"host_numa_other_node_bytes_total", kCounterType, "By", "For programs on other nodes.",
      "node"}},
}};
constexpr Metric kCoreThrottles = {"host_cpu_core_throttles_total", kCounterType, "1",
                                   "Times that a core was slowed down for its heat."};
constexpr Metric kPackageThrottles = {"host_cpu_package_throttles_total", kCounterType, "1",
                                      "Times that a processor was slowed down for its heat."};

std::optional<double> NumberIn(const std::string& path) {
  const auto text = ReadProcFile(path);
  return text.ok() ? Number(absl::StripAsciiWhitespace(*text)) : std::nullopt;
}

void TakeNodes(const std::string& sys, double page_bytes, Sample* out) {
  for (int node = 0; node < kMaxNodes; ++node) {
    const std::string path = absl::StrCat(sys, "/devices/system/node/node", node);
    const std::string name = absl::StrCat(node);
    if (const auto text = ReadProcFile(path + "/meminfo"); text.ok()) {
      ParseNodeMeminfo(*text, name, out);
    }
    if (const auto text = ReadProcFile(path + "/numastat"); text.ok()) {
      ParseNumastat(*text, name, page_bytes, out);
    }
  }
}

// Summed over the cores; a package's count is the same at each of its cores and counted once.
void TakeThrottles(const std::string& sys, Sample* out) {
  double cores = 0;
  bool any = false;
  std::vector<std::optional<double>> packages(kMaxNodes);
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    const std::string path = absl::StrCat(sys, "/devices/system/cpu/cpu", cpu);
    std::error_code error;
    if (!fs::exists(path, error)) break;
    const std::optional<double> core = NumberIn(path + "/thermal_throttle/core_throttle_count");
    if (!core) continue;
    any = true;
    cores += *core;
    const std::optional<double> count = NumberIn(path + "/thermal_throttle/package_throttle_count");
    const std::optional<double> package = NumberIn(path + "/topology/physical_package_id");
    if (count && package && *package < kMaxNodes) packages[static_cast<size_t>(*package)] = count;
  }
  if (!any) return;
  out->Add(kCoreThrottles, cores);
  double sum = 0;
  for (const std::optional<double>& package : packages) sum += package.value_or(0);
  out->Add(kPackageThrottles, sum);
}

}  // namespace

bool ParseTransparentHugePages(absl::string_view text, Sample* out) {
  bool understood = false;
  Sample found;
  for (absl::string_view word : Words(absl::StripAsciiWhitespace(text))) {
    const bool in_force = absl::ConsumePrefix(&word, "[") && absl::ConsumeSuffix(&word, "]");
    understood = understood || in_force;
    found.Add(kHugePages, word, in_force ? 1 : 0);
  }
  if (!understood) return false;
  for (const Sample::Entry& entry : found.entries()) {
    out->Add(*entry.metric, entry.labels, entry.value);
  }
  return true;
}

void AddClockState(const timex& answer, int result, Sample* out) {
  if (result < 0) return;
  constexpr double kMicro = 1e-6;
  constexpr double kNano = 1e-9;
  // Frequencies are parts per million with 16 binary places.
  constexpr double kFrequencyUnit = 1e-6 / 65536;
  const bool synchronized = result != TIME_ERROR && (answer.status & STA_UNSYNC) == 0;
  out->Add(kSynchronized, synchronized ? 1 : 0);
  out->Add(kOffset,
           static_cast<double>(answer.offset) * ((answer.status & STA_NANO) != 0 ? kNano : kMicro));
  out->Add(kMaxError, static_cast<double>(answer.maxerror) * kMicro);
  out->Add(kEstimatedError, static_cast<double>(answer.esterror) * kMicro);
  out->Add(kFrequency, static_cast<double>(answer.freq) * kFrequencyUnit);
}

bool ParseNodeMeminfo(absl::string_view text, absl::string_view node, Sample* out) {
  constexpr size_t kKeyAt = 2;  // Behind "Node 0".
  bool understood = false;
  for (absl::string_view line : Lines(text)) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() < kKeyAt + 2) continue;
    for (const KeyedMetric& keyed : kNodeMemory) {
      const std::optional<double> value = Number(words[kKeyAt + 1]);
      if (keyed.key != words[kKeyAt] || !value) continue;
      out->Add(keyed.metric, node, *value * kKibibyte);
      understood = true;
    }
  }
  return understood;
}

bool ParseNumastat(absl::string_view text, absl::string_view node, double page_bytes, Sample* out) {
  bool understood = false;
  for (absl::string_view line : Lines(text)) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() != 2) continue;
    for (const KeyedMetric& keyed : kNumastat) {
      const std::optional<double> value = Number(words[1]);
      if (keyed.key != words[0] || !value) continue;
      out->Add(keyed.metric, node, *value * page_bytes);
      understood = true;
    }
  }
  return understood;
}

absl::Status TakeHostSettings(const std::string& sys, double page_bytes, Sample* out) {
  const std::string huge_pages = sys + "/kernel/mm/transparent_hugepage/enabled";
  if (const auto text = ReadProcFile(huge_pages); text.ok()) ParseTransparentHugePages(*text, out);
  timex clock = {};
  const int result = ::adjtimex(&clock);
  AddClockState(clock, result, out);
  TakeNodes(sys, page_bytes, out);
  TakeThrottles(sys, out);
  if (!out->entries().empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "nothing below ", sys, " can be read; is it mounted, and is sources.host.sys right?"));
}

}  // namespace tacho::agent
