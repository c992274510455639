// /proc/stat, /proc/loadavg, /proc/uptime and /proc/pressure.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "agent/sources/host/host_parsers.h"
#include "agent/sources/host/host_text.h"
#include "proto/base/stale_marker.h"

namespace tacho::agent {
namespace {

// In the order of the words in the line "cpu". Guest time follows there and is part of user and
// nice.
constexpr std::array<Metric, 8> kCpuTimes = {{
    {"host_cpu_user_seconds_total", kCounterType, "s", "CPU time in user mode, guests included."},
    {"host_cpu_nice_seconds_total", kCounterType, "s", "CPU time in user mode at low priority."},
    {"host_cpu_system_seconds_total", kCounterType, "s", "CPU time in the kernel."},
    {"host_cpu_idle_seconds_total", kCounterType, "s", "CPU time with nothing to do."},
    {"host_cpu_iowait_seconds_total", kCounterType, "s", "CPU time idle while waiting for a disk."},
    {"host_cpu_irq_seconds_total", kCounterType, "s", "CPU time in interrupts."},
    {"host_cpu_softirq_seconds_total", kCounterType, "s", "CPU time in soft interrupts."},
    {"host_cpu_steal_seconds_total", kCounterType, "s",
     "CPU time that the hypervisor gave to others."},
}};
constexpr size_t kIdleWord = 3;
constexpr size_t kIowaitWord = 4;

constexpr Metric kCpus = {"host_cpus", kGaugeType, "1", "CPUs that are online."};
constexpr Metric kUtilization = {
    "host_cpu_utilization_ratio", kGaugeType, "1",
    "Share of all CPU time since the previous sample that was not idle."};

constexpr Metric kLeastBusyCore = {"host_cpu_core_utilization_min_ratio", kGaugeType, "1",
                                   "Of the CPU that was least busy since the last sample."};
constexpr Metric kMostBusyCore = {"host_cpu_core_utilization_max_ratio", kGaugeType, "1",
                                  "Of the CPU that was most busy since the last sample."};
constexpr Metric kBusyCores = {"host_cpu_cores_busy", kGaugeType, "1",
                               "CPUs that were busy for more than 90 % of the time."};
constexpr Metric kIdleCores = {"host_cpu_cores_idle", kGaugeType, "1",
                               "CPUs that were busy for less than 10 % of the time."};
constexpr double kBusy = 0.9;
constexpr double kIdle = 0.1;

constexpr std::array<KeyedMetric, 6> kStatCounts = {{
    {"ctxt", {"host_context_switches_total", kCounterType, "1", "Context switches."}},
    {"intr", {"host_interrupts_total", kCounterType, "1", "Interrupts served."}},
    {"processes", {"host_forks_total", kCounterType, "1", "Processes and threads started."}},
    {"procs_running",
     {"host_processes_running", kGaugeType, "1", "Threads running or ready to run."}},
    {"procs_blocked", {"host_processes_blocked", kGaugeType, "1", "Threads waiting for a disk."}},
    {"btime", {"host_boot_time_seconds", kGaugeType, "s", "When the machine started, Unix time."}},
}};

constexpr std::array<Metric, 3> kLoads = {{
    {"host_load1", kGaugeType, "1", "Load average over one minute."},
    {"host_load5", kGaugeType, "1", "Load average over five minutes."},
    {"host_load15", kGaugeType, "1", "Load average over fifteen minutes."},
}};
constexpr Metric kThreads = {"host_threads", kGaugeType, "1", "Threads that exist."};
constexpr Metric kUptime = {"host_uptime_seconds", kGaugeType, "s",
                            "Time since the machine started."};

constexpr Metric kCpuWaiting = {"host_pressure_cpu_waiting_seconds_total", kCounterType, "s",
                                "Time during which some task waited for a CPU."};
constexpr Metric kMemoryWaiting = {"host_pressure_memory_waiting_seconds_total", kCounterType, "s",
                                   "Time during which some task waited for memory."};
constexpr Metric kMemoryStalled = {"host_pressure_memory_stalled_seconds_total", kCounterType, "s",
                                   "Time during which all tasks waited for memory."};
constexpr Metric kIoWaiting = {"host_pressure_io_waiting_seconds_total", kCounterType, "s",
                               "Time during which some task waited for a disk."};
constexpr Metric kIoStalled = {"host_pressure_io_stalled_seconds_total", kCounterType, "s",
                               "Time during which all tasks waited for a disk."};

// The line "cpu": all CPUs together. False if it has not even the four words of the oldest kernels.
bool AddCpuTimes(const std::vector<absl::string_view>& words, double ticks_per_second, Sample* out,
                 CpuTicks* ticks) {
  *ticks = CpuTicks();
  size_t i = 0;
  for (; i < kCpuTimes.size() && i + 1 < words.size(); ++i) {
    const std::optional<double> value = Number(words[i + 1]);
    if (!value.has_value()) break;
    out->Add(kCpuTimes[i], *value / ticks_per_second);
    ticks->total += *value;
    if (i != kIdleWord && i != kIowaitWord) ticks->busy += *value;
  }
  return i > kIdleWord;
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", total in microseconds.
bool AddPressure(absl::string_view text, absl::string_view kind, const Metric& metric,
                 Sample* out) {
  constexpr absl::string_view kTotal = "total=";
  for (absl::string_view line : Lines(text)) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.empty() || words[0] != kind) continue;
    for (absl::string_view word : words) {
      if (!absl::StartsWith(word, kTotal)) continue;
      const std::optional<double> total = Number(word.substr(kTotal.size()));
      if (!total.has_value()) return false;
      out->Add(metric, *total / 1e6);
      return true;
    }
  }
  return false;
}

}  // namespace

bool ParseProcStat(absl::string_view text, double ticks_per_second, Sample* out, CpuTicks* ticks) {
  bool understood = false;
  double cpus = 0;
  for (absl::string_view line : Lines(text)) {
    if (!absl::StartsWith(line, "cpu")) continue;
    const std::vector<absl::string_view> words = Words(line);
    if (words[0] == "cpu") {
      understood = AddCpuTimes(words, ticks_per_second, out, ticks);
    } else {
      ++cpus;
    }
  }
  if (!understood) return false;
  if (cpus > 0) out->Add(kCpus, cpus);
  ParseKeyed(text, {kStatCounts.begin(), kStatCounts.end()}, out);
  return true;
}

void AddCpuUtilization(const CpuTicks& before, const CpuTicks& after, Sample* out) {
  const double total = after.total - before.total;
  const double busy = after.busy - before.busy;
  // The kernel's counters of idle and waiting time may go back a little.
  const bool known = before.total > 0 && total > 0 && busy >= 0 && busy <= total;
  out->Add(kUtilization, known ? busy / total : StaleMarker());
}

std::vector<CpuTicks> ParseCoreTicks(absl::string_view text) {
  constexpr size_t kMaxCores = 4096;  // More than any machine has.
  std::vector<CpuTicks> cores;
  for (absl::string_view line : Lines(text)) {
    if (!absl::StartsWith(line, "cpu") || absl::StartsWith(line, "cpu ")) continue;
    const std::vector<absl::string_view> words = Words(line);
    if (cores.size() == kMaxCores) break;
    CpuTicks& core = cores.emplace_back();
    for (size_t i = 0; i < kCpuTimes.size() && i + 1 < words.size(); ++i) {
      const double value = Number(words[i + 1]).value_or(0);
      core.total += value;
      if (i != kIdleWord && i != kIowaitWord) core.busy += value;
    }
  }
  return cores;
}

void AddCoreSummary(const std::vector<CpuTicks>& before, const std::vector<CpuTicks>& after,
                    Sample* out) {
  if (after.empty()) return;
  double least = 1;
  double most = 0;
  double busy = 0;
  double idle = 0;
  bool known = before.size() == after.size();
  for (size_t i = 0; known && i < after.size(); ++i) {
    const double total = after[i].total - before[i].total;
    // A core without a tick in between (a short interval, a CPU asleep) was not busy.
    const double share =
        total <= 0 ? 0 : std::clamp((after[i].busy - before[i].busy) / total, 0.0, 1.0);
    least = std::min(least, share);
    most = std::max(most, share);
    busy += share > kBusy ? 1 : 0;
    idle += share < kIdle ? 1 : 0;
  }
  out->Add(kLeastBusyCore, known ? least : StaleMarker());
  out->Add(kMostBusyCore, known ? most : StaleMarker());
  out->Add(kBusyCores, known ? busy : StaleMarker());
  out->Add(kIdleCores, known ? idle : StaleMarker());
}

bool ParseLoadavg(absl::string_view text, Sample* out) {
  const std::vector<absl::string_view> words = Words(text);
  if (words.size() < kLoads.size()) return false;
  for (size_t i = 0; i < kLoads.size(); ++i) {
    const std::optional<double> value = Number(words[i]);
    if (!value.has_value()) return false;
    out->Add(kLoads[i], *value);
  }
  if (words.size() > kLoads.size()) {  // "<running>/<all>"
    const std::vector<absl::string_view> threads = absl::StrSplit(words[kLoads.size()], '/');
    const std::optional<double> all = threads.size() == 2 ? Number(threads[1]) : std::nullopt;
    if (all.has_value()) out->Add(kThreads, *all);
  }
  return true;
}

bool ParseUptime(absl::string_view text, Sample* out) {
  const std::vector<absl::string_view> words = Words(text);
  const std::optional<double> uptime = words.empty() ? std::nullopt : Number(words[0]);
  if (!uptime.has_value()) return false;
  out->Add(kUptime, *uptime);
  return true;
}

bool ParsePressureCpu(absl::string_view text, Sample* out) {
  return AddPressure(text, "some", kCpuWaiting, out);
}

bool ParsePressureMemory(absl::string_view text, Sample* out) {
  const bool some = AddPressure(text, "some", kMemoryWaiting, out);
  return AddPressure(text, "full", kMemoryStalled, out) || some;
}

bool ParsePressureIo(absl::string_view text, Sample* out) {
  const bool some = AddPressure(text, "some", kIoWaiting, out);
  return AddPressure(text, "full", kIoStalled, out) || some;
}

}  // namespace tacho::agent
