// Parsers of Linux's files about a machine. Pure functions on text: each adds the series that it
// finds to `out` in base units (seconds, bytes) and passes over lines and words that it does not
// understand, since kernels add new ones. False if nothing in the text was understood.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "agent/sources/rows/sample.h"

namespace tacho::agent {

// Busy and total CPU time of all CPUs since boot, in clock ticks, for the utilisation between
// looks.
struct CpuTicks {
  double busy = 0;
  double total = 0;
};

// /proc/stat. `ticks_per_second` is sysconf(_SC_CLK_TCK). *ticks is set if the result is true.
bool ParseProcStat(absl::string_view text, double ticks_per_second, Sample* out, CpuTicks* ticks);
// Share of CPU time from `before` to `after` that was busy, 0 to 1; the stale marker if that is not
// known. Time waiting for the disk counts as idle.
void AddCpuUtilization(const CpuTicks& before, const CpuTicks& after, Sample* out);

// The ticks of each CPU in /proc/stat, in the order of their numbers.
std::vector<CpuTicks> ParseCoreTicks(absl::string_view text);
// A summary of the CPUs, because one busy core hides in the mean of two hundred: the least and the
// most busy one, and how many are busy and idle. Nothing if CPUs came or went in between.
void AddCoreSummary(const std::vector<CpuTicks>& before, const std::vector<CpuTicks>& after,
                    Sample* out);

bool ParseLoadavg(absl::string_view text, Sample* out);  // /proc/loadavg
bool ParseUptime(absl::string_view text, Sample* out);   // /proc/uptime

bool ParseMeminfo(absl::string_view text, Sample* out);                    // /proc/meminfo
bool ParseVmstat(absl::string_view text, double page_bytes, Sample* out);  // /proc/vmstat

// /proc/net/dev, without devices that only hand on what another one carries or that stand for one
// container (loopback, veth, bridges of container runtimes, …).
bool ParseNetDev(absl::string_view text, Sample* out);
// /proc/net/snmp and /proc/net/netstat: TCP of the whole machine, above all what it sent again.
bool ParseNetSnmp(absl::string_view text, Sample* out);
bool ParseNetNetstat(absl::string_view text, Sample* out);
// /proc/diskstats: whole disks, without partitions, loop devices, RAM disks and device mapper.
bool ParseDiskstats(absl::string_view text, Sample* out);

// /proc/pressure/{cpu,memory,io}
bool ParsePressureCpu(absl::string_view text, Sample* out);
bool ParsePressureMemory(absl::string_view text, Sample* out);
bool ParsePressureIo(absl::string_view text, Sample* out);

// cgroup v2, of the agent's own control group as it sees it (the container's, in a container).
bool ParseCgroupCpuStat(absl::string_view text, Sample* out);
bool ParseCgroupCpuMax(absl::string_view text, Sample* out);  // "max" is no series.
bool ParseCgroupPids(absl::string_view text, Sample* out);    // pids.current
bool ParseCgroupMemoryCurrent(absl::string_view text, Sample* out);
bool ParseCgroupMemoryMax(absl::string_view text, Sample* out);  // "max" is no series.
bool ParseCgroupMemoryEvents(absl::string_view text, Sample* out);

}  // namespace tacho::agent
