// /proc/meminfo, /proc/vmstat, and the memory and CPU of a control group.
#include <array>
#include <optional>
#include <vector>

#include "agent/sources/host/host_parsers.h"
#include "agent/sources/host/host_text.h"

namespace tacho::agent {
namespace {

constexpr double kKiB = 1024;  // meminfo's "kB".
constexpr double kMicrosecond = 1e-6;

constexpr std::array<KeyedMetric, 16> kMeminfo = {{
    {"MemTotal:", {"host_memory_total_bytes", kGaugeType, "By", "Memory of the machine."}, kKiB},
    {"MemFree:", {"host_memory_free_bytes", kGaugeType, "By", "Memory used for nothing."}, kKiB},
    {"MemAvailable:",
     {"host_memory_available_bytes", kGaugeType, "By",
      "Memory that programs can have without swapping."},
     kKiB},
    {"Buffers:",
     {"host_memory_buffers_bytes", kGaugeType, "By", "Memory buffering block devices."},
     kKiB},
    {"Cached:", {"host_memory_cached_bytes", kGaugeType, "By", "Memory caching files."}, kKiB},
    {"AnonPages:", {"host_memory_anonymous_bytes", kGaugeType, "By", "Memory of programs."}, kKiB},
    {"AnonHugePages:",
     {"host_memory_anonymous_huge_bytes", kGaugeType, "By", "Of it, in transparent huge pages."},
     kKiB},
    {"HugePages_Total:", {"host_huge_pages", kGaugeType, "1", "Huge pages set aside."}},
    {"HugePages_Free:", {"host_huge_pages_free", kGaugeType, "1", "Of them, unused."}},
    {"Shmem:", {"host_memory_shared_bytes", kGaugeType, "By", "Shared memory and tmpfs."}, kKiB},
    {"SReclaimable:",
     {"host_memory_slab_reclaimable_bytes", kGaugeType, "By", "Kernel caches that can be freed."},
     kKiB},
    {"SUnreclaim:",
     {"host_memory_slab_unreclaimable_bytes", kGaugeType, "By",
      "Kernel objects that cannot be freed."},
     kKiB},
    {"Dirty:",
     {"host_memory_dirty_bytes", kGaugeType, "By", "File data waiting to be written."},
     kKiB},
    {"Writeback:",
     {"host_memory_writeback_bytes", kGaugeType, "By", "File data being written."},
     kKiB},
    {"SwapTotal:", {"host_swap_total_bytes", kGaugeType, "By", "Swap space."}, kKiB},
    {"SwapFree:", {"host_swap_free_bytes", kGaugeType, "By", "Swap space that is unused."}, kKiB},
}};

constexpr std::array<KeyedMetric, 3> kVmstatCounts = {{
    {"pgfault",
     {"host_memory_page_faults_total", kCounterType, "1", "Page faults, minor and major."}},
    {"pgmajfault",
     {"host_memory_major_page_faults_total", kCounterType, "1",
      "Page faults that read from a disk."}},
    {"oom_kill",
     {"host_memory_oom_kills_total", kCounterType, "1", "Processes killed for want of memory."}},
}};
constexpr Metric kSwapIn = {"host_swap_in_bytes_total", kCounterType, "By",
                            "Read from swap space."};
constexpr Metric kSwapOut = {"host_swap_out_bytes_total", kCounterType, "By",
                             "Written to swap space."};

constexpr std::array<KeyedMetric, 6> kCgroupCpu = {{
    {"usage_usec",
     {"host_cgroup_cpu_usage_seconds_total", kCounterType, "s", "CPU time of the control group."},
     kMicrosecond},
    {"user_usec",
     {"host_cgroup_cpu_user_seconds_total", kCounterType, "s", "Of it, in user mode."},
     kMicrosecond},
    {"system_usec",
     {"host_cgroup_cpu_system_seconds_total", kCounterType, "s", "Of it, in the kernel."},
     kMicrosecond},
    {"nr_periods",
     {"host_cgroup_cpu_periods_total", kCounterType, "1",
      "Periods in which the CPU limit was watched."}},
    {"nr_throttled",
     {"host_cgroup_cpu_throttled_periods_total", kCounterType, "1",
      "Of them, those that hit the limit."}},
    {"throttled_usec",
     {"host_cgroup_cpu_throttled_seconds_total", kCounterType, "s",
      "Time held back by the CPU limit."},
     kMicrosecond},
}};

constexpr Metric kCgroupCurrent = {"host_cgroup_memory_current_bytes", kGaugeType, "By",
                                   "Memory that the control group uses."};
constexpr Metric kCgroupMax = {"host_cgroup_memory_max_bytes", kGaugeType, "By",
                               "Memory that the control group may use."};
constexpr Metric kCgroupPids = {"host_cgroup_pids", kGaugeType, "1",
                                "Processes and threads of the control group."};
constexpr Metric kCgroupCpuLimit = {"host_cgroup_cpu_limit_cpus", kGaugeType, "1",
                                    "CPUs whose time the control group may use."};
constexpr std::array<KeyedMetric, 4> kCgroupEvents = {{
    {"high",
     {"host_cgroup_memory_high_total", kCounterType, "1",
      "Times slowed down above the high mark."}},
    {"max", {"host_cgroup_memory_max_total", kCounterType, "1", "Times that the limit was hit."}},
    {"oom", {"host_cgroup_memory_oom_total", kCounterType, "1", "Times that memory ran out."}},
    {"oom_kill",
     {"host_cgroup_memory_oom_kills_total", kCounterType, "1",
      "Processes killed for want of memory."}},
}};

bool AddSingle(absl::string_view text, const Metric& metric, Sample* out) {
  const std::vector<absl::string_view> lines = Lines(text);
  const std::optional<double> value = lines.empty() ? std::nullopt : Number(lines[0]);
  if (value.has_value()) out->Add(metric, *value);
  return value.has_value();
}

}  // namespace

bool ParseMeminfo(absl::string_view text, Sample* out) {
  return ParseKeyed(text, {kMeminfo.begin(), kMeminfo.end()}, out);
}

bool ParseVmstat(absl::string_view text, double page_bytes, Sample* out) {
  bool understood = ParseKeyed(text, {kVmstatCounts.begin(), kVmstatCounts.end()}, out);
  for (absl::string_view line : Lines(text)) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() != 2 || (words[0] != "pswpin" && words[0] != "pswpout")) continue;
    const std::optional<double> pages = Number(words[1]);
    if (!pages.has_value()) continue;
    out->Add(words[0] == "pswpin" ? kSwapIn : kSwapOut, *pages * page_bytes);
    understood = true;
  }
  return understood;
}

bool ParseCgroupCpuStat(absl::string_view text, Sample* out) {
  return ParseKeyed(text, {kCgroupCpu.begin(), kCgroupCpu.end()}, out);
}

// "max 100000" or "150000 100000": microseconds of CPU time in each period of so many.
bool ParseCgroupCpuMax(absl::string_view text, Sample* out) {
  const std::vector<absl::string_view> words = Words(text);
  if (words.size() == 2 && words[0] == "max") return true;
  const std::optional<double> quota = words.size() == 2 ? Number(words[0]) : std::nullopt;
  const std::optional<double> period = words.size() == 2 ? Number(words[1]) : std::nullopt;
  if (!quota || !period || *period == 0) return false;
  out->Add(kCgroupCpuLimit, *quota / *period);
  return true;
}

bool ParseCgroupPids(absl::string_view text, Sample* out) {
  return AddSingle(text, kCgroupPids, out);
}

bool ParseCgroupMemoryCurrent(absl::string_view text, Sample* out) {
  return AddSingle(text, kCgroupCurrent, out);
}

bool ParseCgroupMemoryMax(absl::string_view text, Sample* out) {
  const std::vector<absl::string_view> lines = Lines(text);
  return (!lines.empty() && lines[0] == "max") || AddSingle(text, kCgroupMax, out);
}

bool ParseCgroupMemoryEvents(absl::string_view text, Sample* out) {
  return ParseKeyed(text, {kCgroupEvents.begin(), kCgroupEvents.end()}, out);
}

}  // namespace tacho::agent
