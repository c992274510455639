#include "agent/sources/chips/process_jobs.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
  // A task that cannot be told is not told.
  if (!found.trouble.empty()) return {found.job, "", "", false};
  return {found.job, absl::StrCat(found.task), absl::StrCat(found.attempt), false};
}

}  // namespace tacho::agent
