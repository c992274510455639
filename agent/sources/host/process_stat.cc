#include "agent/sources/host/process_stat.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "agent/sources/host/host_text.h"

namespace tacho::agent {

std::optional<ProcessStat> ParseProcessStat(absl::string_view text) {
  // Words behind the name, from 0; proc(5) counts from 1 and has pid and name before.
  enum Word {
    kState = 0,
    kMajorFaults = 9,
    kUserTicks = 11,
    kSystemTicks = 12,
    kThreadCount = 17,
    kStartTicks = 19,
    kResidentPages = 21,
    kWords = 22,
    kExitStatus = 49
  };
  const size_t name_end = text.rfind(')');
  if (name_end == absl::string_view::npos) return std::nullopt;
  const std::vector<absl::string_view> words = Words(text.substr(name_end + 1));
  if (words.size() < kWords || words[kState].size() != 1) return std::nullopt;
  ProcessStat stat;
  stat.state = words[kState][0];
  stat.user_ticks = Number(words[kUserTicks]).value_or(0);
  stat.system_ticks = Number(words[kSystemTicks]).value_or(0);
  stat.major_faults = Number(words[kMajorFaults]).value_or(0);
  stat.threads = Number(words[kThreadCount]).value_or(0);
  stat.resident_pages = Number(words[kResidentPages]).value_or(0);
  if (!absl::SimpleAtoi(words[kStartTicks], &stat.start_ticks)) return std::nullopt;
  int exit_status = 0;
  if (stat.state == 'Z' && words.size() > kExitStatus &&
      absl::SimpleAtoi(words[kExitStatus], &exit_status)) {
    stat.exit_status = exit_status;
  }
  return stat;
}

ProcessIo ParseProcessIo(absl::string_view text) {
  ProcessIo io;
  for (absl::string_view line : Lines(text)) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() != 2) continue;
    if (words[0] == "read_bytes:") io.read_bytes = Number(words[1]);
    if (words[0] == "write_bytes:") io.write_bytes = Number(words[1]);
  }
  return io;
}

std::optional<double> CountEntries(const std::string& directory, size_t max) {
  namespace fs = std::filesystem;
  std::error_code error;
  size_t count = 0;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator() && count < max; entry.increment(error)) {
    ++count;
  }
  if (error) return std::nullopt;
  return static_cast<double>(count);
}

}  // namespace tacho::agent
