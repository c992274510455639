// Files of /proc and /sys, of which names of processes, mounts and devices are what others made
// them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/sources/chips/chip_holders.h"
#include "agent/sources/host/file_systems.h"
#include "agent/sources/host/host_parsers.h"
#include "agent/sources/host/host_settings.h"
#include "agent/sources/host/process_stat.h"

namespace {

using tacho::agent::Sample;

// A process may call itself anything: that must not change what the kernel says of it.
void CheckName(absl::string_view name) {
  const std::string rest =
      ") S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25\n";
  const auto stat = tacho::agent::ParseProcessStat(absl::StrCat("41 (", name, rest));
  if (!stat.has_value() || stat->state != 'S' || stat->major_faults != 9 ||
      stat->user_ticks != 11 || stat->system_ticks != 12 || stat->threads != 17 ||
      stat->start_ticks != 19 || stat->resident_pages != 21) {
    std::abort();
  }
}

void ParseAll(absl::string_view text) {
  Sample out;
  tacho::agent::CpuTicks ticks;
  tacho::agent::ParseProcStat(text, 100, &out, &ticks);
  const auto cores = tacho::agent::ParseCoreTicks(text);
  tacho::agent::AddCoreSummary(cores, cores, &out);
  for (const auto parse :
       {tacho::agent::ParseLoadavg, tacho::agent::ParseUptime, tacho::agent::ParseMeminfo,
        tacho::agent::ParseNetDev, tacho::agent::ParseNetSnmp, tacho::agent::ParseNetNetstat,
        tacho::agent::ParseDiskstats, tacho::agent::ParsePressureCpu,
        tacho::agent::ParsePressureMemory, tacho::agent::ParsePressureIo,
        tacho::agent::ParseCgroupCpuStat, tacho::agent::ParseCgroupCpuMax,
        tacho::agent::ParseCgroupPids, tacho::agent::ParseCgroupMemoryCurrent,
        tacho::agent::ParseCgroupMemoryMax, tacho::agent::ParseCgroupMemoryEvents,
        tacho::agent::ParseMountstats, tacho::agent::ParseTransparentHugePages}) {
    parse(text, &out);
  }
  tacho::agent::ParseVmstat(text, 4096, &out);
  tacho::agent::ParseNodeMeminfo(text, "0", &out);
  tacho::agent::ParseNumastat(text, "0", 4096, &out);
  tacho::agent::ParseMounts(text);
  tacho::agent::ParseProcessIo(text);
  tacho::agent::ParseEnviron(text);
  if (out.entries().size() > Sample::kMaxSeries) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckName(bytes);
  tacho::agent::ParseProcessStat(bytes);
  ParseAll(bytes);
  return 0;
}
