// The kernel's figures of one process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::agent {

// /proc/<pid>/stat. The name in parentheses may hold anything, spaces and parentheses included.
struct ProcessStat {
  char state = '?';  // 'R', 'S', 'D', …
  double user_ticks = 0;
  double system_ticks = 0;
  double major_faults = 0;
  double threads = 0;
  // Since boot: distinguishes a process from a later one with its number.
  uint64_t start_ticks = 0;
  double resident_pages = 0;
  // As wait(2) returns it. Only a zombie has one; a reader that may not trace the process sees 0.
  std::optional<int> exit_status;
};
std::optional<ProcessStat> ParseProcessStat(absl::string_view text);

// The numbers behind "read_bytes:" and "write_bytes:" of /proc/<pid>/io.
struct ProcessIo {
  std::optional<double> read_bytes;
  std::optional<double> write_bytes;
};
ProcessIo ParseProcessIo(absl::string_view text);

// The number of entries of a directory, at most `max`; nullopt if it may not be read.
std::optional<double> CountEntries(const std::string& directory, size_t max);

}  // namespace tacho::agent
