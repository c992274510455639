#include "server/http/process_metrics.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/http/families.h"

namespace tacho::server::http {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Seconds since the epoch at which the machine was booted; 0 if unknown.
uint64_t BootTime(const std::string& proc) {
  std::istringstream stat(ReadFile(absl::StrCat(proc, "/stat")));
  for (std::string word; stat >> word;) {
    uint64_t seconds = 0;
    if (word == "btime" && stat >> seconds) return seconds;
  }
  return 0;
}

}  // namespace

ProcessStat ParseProcessStat(absl::string_view stat) {
  // Numbered as in proc(5); the name is field 2, and what follows its last ')' begins at 3.
  constexpr size_t kFirst = 3, kUserTicks = 14, kSystemTicks = 15, kStart = 22, kResident = 24;
  ProcessStat parsed;
  const size_t name_end = stat.rfind(')');
  if (name_end == absl::string_view::npos) return parsed;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(stat.substr(name_end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (fields.size() <= kResident - kFirst) return parsed;
  uint64_t system_ticks = 0;
  parsed.ok = absl::SimpleAtoi(fields[kUserTicks - kFirst], &parsed.cpu_ticks) &&
              absl::SimpleAtoi(fields[kSystemTicks - kFirst], &system_ticks) &&
              absl::SimpleAtoi(fields[kStart - kFirst], &parsed.start_ticks) &&
              absl::SimpleAtoi(fields[kResident - kFirst], &parsed.resident_pages);
  parsed.cpu_ticks += system_ticks;
  return parsed;
}

std::vector<prometheus::MetricFamily> ProcessFamilies(const std::string& proc) {
  std::vector<prometheus::MetricFamily> families;
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const ProcessStat stat = ParseProcessStat(ReadFile(absl::StrCat(proc, "/self/stat")));
  if (stat.ok) {
    families.push_back(CounterFamily("process_cpu_seconds_total", "User and system CPU time.",
                                     static_cast<double>(stat.cpu_ticks) / ticks_per_second));
    families.push_back(GaugeFamily(
        "process_resident_memory_bytes", "Resident memory.",
        static_cast<double>(stat.resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE))));
    if (const uint64_t boot = BootTime(proc); boot > 0) {
      families.push_back(GaugeFamily(
          "process_start_time_seconds", "When the process was started.",
          static_cast<double>(boot) + static_cast<double>(stat.start_ticks) / ticks_per_second));
    }
  }
  std::error_code error;
  std::filesystem::directory_iterator fds(absl::StrCat(proc, "/self/fd"), error);
  if (!error) {
    families.push_back(GaugeFamily("process_open_fds", "Open file descriptors.",
                                   static_cast<double>(std::distance(begin(fds), end(fds)))));
  }
  return families;
}

}  // namespace tacho::server::http
