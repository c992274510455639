#include "agent/sources/chips/chip_holders.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

std::vector<int> ProcessesOf(const std::string& proc) {
  std::vector<int> pids;
  std::error_code error;
  for (fs::directory_iterator entry(proc, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    int pid = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &pid) && pid > 0) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace

Environment ParseEnviron(absl::string_view text) {
  Environment environment;
  for (const absl::string_view entry : absl::StrSplit(text, '\0', absl::SkipEmpty())) {
    const size_t equals = entry.find('=');
    if (equals == absl::string_view::npos || equals == 0) continue;
    environment.try_emplace(std::string(entry.substr(0, equals)),
                            std::string(entry.substr(equals + 1)));
  }
  return environment;
}

HolderWatch::HolderWatch(std::string proc) : proc_(std::move(proc)) {}

const ChipHolders& HolderWatch::Look(absl::Time now, const std::set<std::string>& devices) {
  const absl::Duration since = now - looked_;
  const absl::Duration pause = StillHold(devices) ? kSeldom : kOften;
  if (since >= absl::ZeroDuration() && since < pause) return found_;
  looked_ = now;
  LookThroughAll(devices);
  return found_;
}

bool HolderWatch::StillHold(const std::set<std::string>& devices) const {
  std::set<std::string> held;
  for (const ChipHolder& holder : found_.holders) {
    const std::optional<std::set<std::string>> open = OpenOf(holder.pid, devices);
    if (open != holder.devices) return false;
    held.insert(open->begin(), open->end());
  }
  return held == devices;
}

void HolderWatch::LookThroughAll(const std::set<std::string>& devices) {
  found_ = {};
  if (devices.empty()) return;
  for (const int pid : ProcessesOf(proc_)) {
    std::optional<std::set<std::string>> open = OpenOf(pid, devices);
    if (!open.has_value()) found_.complete = false;
    if (!open.has_value() || open->empty()) continue;
    found_.holders.push_back({pid, *std::move(open), ReadEnviron(proc_, pid)});
  }
}

std::optional<std::set<std::string>> HolderWatch::OpenOf(
    int pid, const std::set<std::string>& devices) const {
  std::set<std::string> open;
  std::error_code error;
  fs::directory_iterator entry(absl::StrCat(proc_, "/", pid, "/fd"), error);
  if (error == std::errc::permission_denied) return std::nullopt;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry->path(), gone).string();
    if (!gone && devices.contains(target)) open.insert(target);
  }
  return open;
}

std::optional<Environment> ReadEnviron(const std::string& proc, int pid) {
  std::ifstream file(absl::StrCat(proc, "/", pid, "/environ"), std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kMaxEnvironBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxEnvironBytes) return std::nullopt;
  return ParseEnviron(text);
}

}  // namespace tacho::agent
