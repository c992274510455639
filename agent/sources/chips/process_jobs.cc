#include "agent/sources/chips/process_jobs.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/sources/chips/chip_holders.h"
#include "client/environment_identity.h"
#include "client/ring/ring_reader.h"

namespace tacho::agent {
namespace fs = std::filesystem;

std::vector<RingOwner> OwnersOfRings(const std::string& directory) {
  std::vector<RingOwner> owners;
  if (directory.empty()) return owners;
  size_t looked = 0;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!absl::EndsWith(path, ".ring") || ++looked > kMaxRings) continue;
    const absl::StatusOr<std::unique_ptr<client::RingReader>> ring = client::RingReader::Open(path);
    if (!ring.ok()) continue;
    const client::RingInfo& info = (*ring)->info();
    owners.push_back({static_cast<int>(info.pid),
                      {info.job, absl::StrCat(info.task), absl::StrCat(info.attempt), true},
                      (*ring)->WriterAlive()});
  }
  return owners;
}

ProcessJob JobOfEnvironment(const std::string& proc, int pid) {
  const std::optional<Environment> environment = ReadEnviron(proc, pid);
  if (!environment.has_value()) return {};
  const client::AttemptIdentity found = client::FindIdentity(
      "", std::nullopt, std::nullopt, [&environment](const char* name) -> const char* {
        const auto variable = environment->find(name);
        return variable == environment->end() ? nullptr : variable->second.c_str();
      });
  if (found.job.empty()) return {};
  // Without a clear task, only the job is given.
  if (!found.trouble.empty()) return {found.job, "", "", false};
  return {found.job, absl::StrCat(found.task), absl::StrCat(found.attempt), false};
}

namespace {

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return absl::ascii_isdigit(c); });
}

// Entries of the directory that are a number behind the prefix.
void AddNumbered(const fs::path& directory, absl::string_view prefix,
                 std::set<std::string>* devices) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view number = name;
    if (absl::ConsumePrefix(&number, prefix) && IsNumber(number)) {
      devices->insert(entry->path().string());
    }
  }
}

// Lists the device files of TPUs, under either of their drivers, and of NVIDIA's GPUs.
std::set<std::string> ChipDevices(const fs::path& dev) {
  std::set<std::string> devices;
  AddNumbered(dev, "accel", &devices);
  AddNumbered(dev / "vfio", "", &devices);
  AddNumbered(dev, "nvidia", &devices);
  return devices;
}

}  // namespace

std::vector<ProcessJob> FindRunningTasks(const RunningTasksPlaces& places) {
  std::vector<ProcessJob> tasks;
  std::set<std::tuple<std::string, std::string, std::string>> known;
  const auto add = [&](ProcessJob job) {
    if (job.job.empty() || job.task.empty() || tasks.size() >= kMaxRunningTasks) return;
    if (known.emplace(job.job, job.task, job.attempt).second) tasks.push_back(std::move(job));
  };
  std::set<int> told;
  for (RingOwner& owner : OwnersOfRings(places.rings)) {
    told.insert(owner.pid);
    if (owner.alive) add(std::move(owner.job));
  }
  HolderWatch watch(places.proc);
  for (const ChipHolder& holder : watch.Look(absl::UnixEpoch(), ChipDevices(places.dev)).holders) {
    // Its ring says better which task it is.
    if (!told.contains(holder.pid)) add(JobOfEnvironment(places.proc, holder.pid));
  }
  std::sort(tasks.begin(), tasks.end(), [](const ProcessJob& a, const ProcessJob& b) {
    return std::tie(a.job, a.task, a.attempt) < std::tie(b.job, b.task, b.attempt);
  });
  return tasks;
}

}  // namespace tacho::agent
