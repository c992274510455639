#include "server/edge/memory_budget.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tacho::server::edge {
namespace {

uint64_t PageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

// The least memory.max of the group and those around it (cgroup v2); none if there is no bound.
uint64_t GroupBytes() {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  std::string line;
  for (std::ifstream groups("/proc/self/cgroup"); std::getline(groups, line);) {
    absl::string_view path = line;
    if (!absl::ConsumePrefix(&path, "0::")) continue;
    for (std::string folder(path);; folder.resize(folder.rfind('/'))) {
      std::string text;
      std::ifstream(absl::StrCat("/sys/fs/cgroup", folder, "/memory.max")) >> text;
      uint64_t bytes = 0;
      if (absl::SimpleAtoi(text, &bytes)) least = std::min(least, bytes);
      if (folder.find('/') == std::string::npos) break;
    }
  }
  return least;
}

Pressure PressureOf(uint64_t used, uint64_t budget) {
  const double share = static_cast<double>(used) / static_cast<double>(budget);
  if (share >= 0.95) return Pressure::kRefuse;
  if (share >= 0.90) return Pressure::kSlowDown;
  return share >= 0.80 ? Pressure::kHoldBack : Pressure::kNone;
}

}  // namespace

uint64_t ResidentBytes() {
  // Reads without a stream, because it runs hundreds of times a second while connections are young.
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 256> text = {};
  const ssize_t size = read(fd, text.data(), text.size());
  close(fd);
  const absl::string_view line(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  const std::vector<absl::string_view> pages = absl::StrSplit(line, ' ');
  uint64_t resident = 0;
  uint64_t of_files = 0;
  if (pages.size() < 3 || !absl::SimpleAtoi(pages[1], &resident) ||
      !absl::SimpleAtoi(pages[2], &of_files)) {
    return 0;
  }
  return (resident - std::min(of_files, resident)) * PageBytes();
}

uint64_t UsualBudget() {
  const uint64_t machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * PageBytes();
  return std::min(machine, GroupBytes()) / 5 * 4;
}

MemoryBudget::MemoryBudget(Options options)
    : options_(std::move(options)),
      budget_(options_.budget_bytes == 0 ? UsualBudget() : options_.budget_bytes) {}

void MemoryBudget::Start() {
  const auto round = [this] {
    Look();
    if (options_.looked) options_.looked();
  };
  round();
  thread_.Start("memory budget", RepeatingThread::Priority::kUsual, options_.round, round);
}

void MemoryBudget::SetBudget(uint64_t bytes) {
  budget_ = bytes == 0 ? UsualBudget() : bytes;
  Look();
}

void MemoryBudget::Look() {
  used_ = options_.used();
  pressure_ = PressureOf(used(), budget());
}

}  // namespace tacho::server::edge
