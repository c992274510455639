// /proc/meminfo, /proc/vmstat, and the memory and CPU of a control group.
#include <array>
#include <optional>
#include <vector>

#include "agent/sources/host/host_parsers.h"
#include "agent/sources/host/host_text.h"

namespace tacho::agent {
namespace {

constexpr v1::MetricType kGauge = v1::METRIC_TYPE_GAUGE;
constexpr v1::MetricType kCounter = v1::METRIC_TYPE_COUNTER;
constexpr double kKiB = 1024;  // meminfo's "kB".
constexpr double kMicrosecond = 1e-6;

constexpr std::array<KeyedMetric, 16> kMeminfo = {{
    {"MemTotal:", {"host_memory_total_bytes", kGauge, "By", "Memory of the machine."}, kKiB},
    {"MemFree:", {"host_memory_free_bytes", kGauge, "By", "Memory used for nothing."}, kKiB},
    {"MemAvailable:",
     {"host_memory_available_bytes", kGauge, "By",
      "Memory that programs can have without swapping."},
     kKiB},
    {"Buffers:",
     {"host_memory_buffers_bytes", kGauge, "By", "Memory buffering block devices."},
     kKiB},
    {"Cached:", {"host_memory_cached_bytes", kGauge, "By", "Memory caching files."}, kKiB},
    {"AnonPages:", {"host_memory_anonymous_bytes", kGauge, "By", "Memory of programs."}, kKiB},
    {"AnonHugePages:",
     {"host_memory_anonymous_huge_bytes", kGauge, "By", "Of it, in transparent huge pages."},
     kKiB},
    {"HugePages_Total:", {"host_huge_pages", kGauge, "1", "Huge pages set aside."}},
    {"HugePages_Free:", {"host_huge_pages_free", kGauge, "1", "Of them, unused."}},
    {"Shmem:", {"host_memory_shared_bytes", kGauge, "By", "Shared memory and tmpfs."}, kKiB},
    {"SReclaimable:",
     {"host_memory_slab_reclaimable_bytes", kGauge, "By", "Kernel caches that can be freed."},
     kKiB},
    {"SUnreclaim:",
     {"host_memory_slab_unreclaimable_bytes", kGauge, "By", "Kernel objects that cannot be freed."},
     kKiB},
    {"Dirty:", {"host_memory_dirty_bytes", kGauge, "By", "File data waiting to be written."}, kKiB},
    {"Writeback:", {"host_memory_writeback_bytes", kGauge, "By", "File data being written."}, kKiB},
    {"SwapTotal:", {"host_swap_total_bytes", kGauge, "By", "Swap space."}, kKiB},
    {"SwapFree:", {"host_swap_free_bytes", kGauge, "By", "Swap space that is unused."}, kKiB},
}};

constexpr std::array<KeyedMetric, 3> kVmstatCounts = {{
    {"pgfault", {"host_memory_page_faults_total", kCounter, "1", "Page faults, minor and major."}},
    {"pgmajfault",
     {"host_memory_major_page_faults_total", kCounter, "1", "Page faults that read from a disk."}},
    {"oom_kill",
     {"host_memory_oom_kills_total", kCounter, "1", "Processes killed for want of memory."}},
}};
constexpr Metric kSwapIn = {"host_swap_in_bytes_total", kCounter, "By", "Read from swap space."};
constexpr Metric kSwapOut = {"host_swap_out_bytes_total", kCounter, "By", "Written to swap space."};

constexpr std::array<KeyedMetric, 6> kCgroupCpu = {{
    {"usage_usec",
     {"host_cgroup_cpu_usage_seconds_total", kCounter, "s", "CPU time of the control group."},
     kMicrosecond},
    {"user_usec",
     {"host_cgroup_cpu_user_seconds_total", kCounter, "s", "Of it, in user mode."},
     kMicrosecond},
    {"system_usec",
     {"host_cgroup_cpu_system_seconds_total", kCounter, "s", "Of it, in the kernel."},
     kMicrosecond},
    {"nr_periods",
     {"host_cgroup_cpu_periods_total", kCounter, "1",
      "Periods in which the CPU limit was watched."}},
    {"nr_throttled",
     {"host_cgroup_cpu_throttled_periods_total", kCounter, "1",
      "Of them, those that hit the limit."}},
    {"throttled_usec",
     {"host_cgroup_cpu_throttled_seconds_total", kCounter, "s", "Time held back by the CPU limit."},
     kMicrosecond},
}};

constexpr Metric kCgroupCurrent = {"host_cgroup_memory_current_bytes", kGauge, "By",
                                   "Memory that the control group uses."};
constexpr Metric kCgroupMax = {"host_cgroup_memory_max_bytes", kGauge, "By",
                               "Memory that the control group may use."};
constexpr Metric kCgroupPids = {"host_cgroup_pids", kGauge, "1",
                                "Processes and threads of the control group."};
constexpr Metric kCgroupCpuLimit = {"host_cgroup_cpu_limit_cpus", kGauge, "1",
                                    "CPUs whose time the control group may use."};
constexpr std::array<KeyedMetric, 4> kCgroupEvents = {{
    {"high",
     {"host_cgroup_memory_high_total", kCounter, "1", "Times slowed down above the high mark."}},
    {"max", {"host_cgroup_memory_max_total", kCounter, "1", "Times that the limit was hit."}},
    {"oom", {"host_cgroup_memory_oom_total", kCounter, "1", "Times that memory ran out."}},
    {"oom_kill",
     {"host_cgroup_memory_oom_kills_total", kCounter, "1", "Processes killed for want of memory."}},
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
