#include "tests/crash/memory_cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace tacho::crash {
namespace {

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return static_cast<bool>(file.flush());
}

// The directory of our own group, and the name of its file with the limit; of version 1 or 2 of
// control groups.
bool FindOwn(std::string* directory, std::string* limit_file) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    *limit_file = controllers == "memory" ? "memory.limit_in_bytes" : "memory.max";
    *directory = std::string("/sys/fs/cgroup") + (controllers.empty() ? "" : "/memory") + path;
    if (controllers != "memory" && !controllers.empty()) continue;
    if (access((*directory + "/cgroup.procs").c_str(), W_OK) == 0) return true;
  }
  return false;
}

}  // namespace

MemoryCgroup::MemoryCgroup(uint64_t limit_bytes) {
  std::string own;
  std::string limit_file;
  if (!FindOwn(&own, &limit_file)) {
    trouble_ = "no control group of our own that may be written";
    return;
  }
  path_ = own + "/tacho_test_" + std::to_string(getpid());
  if (mkdir(path_.c_str(), 0755) != 0) {
    trouble_ = "no control group can be made in " + own;
    path_.clear();
  } else if (!Write(path_ + "/" + limit_file, std::to_string(limit_bytes))) {
    // Version 2 gives a group that has processes no children with limits.
    trouble_ = path_ + " takes no limit of memory";
  } else {
    Write(path_ + "/memory.swap.max", "0");  // Not where there is no swap.
  }
}

MemoryCgroup::~MemoryCgroup() {
  if (!path_.empty()) rmdir(path_.c_str());
}

bool MemoryCgroup::Enter() const {
  return Write(path_ + "/cgroup.procs", std::to_string(getpid()));
}

}  // namespace tacho::crash
