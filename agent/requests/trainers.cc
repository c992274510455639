#include "agent/requests/trainers.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/ring/ring_reader.h"

namespace tacho::agent {
namespace {

bool IsAsked(const v1::AgentRequest& request, const client::RingInfo& info) {
  if (info.job != request.job() || info.attempt != request.attempt()) return false;
  const auto& tasks = request.tasks();
  return tasks.empty() || std::find(tasks.begin(), tasks.end(), info.task) != tasks.end();
}

}  // namespace

absl::StatusOr<std::vector<Trainer>> FindTrainers(const std::string& directory,
                                                  const v1::AgentRequest& request) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(directory.c_str()), closedir);
  if (listing == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("cannot list sources.rings.directory ", directory, ": ", strerror(errno)));
  }
  std::map<uint32_t, Trainer> newest;
  size_t rings = 0;
  while (const dirent* const entry = readdir(listing.get())) {
    const absl::string_view name = entry->d_name;
    if (!absl::EndsWith(name, ".ring")) continue;
    if (++rings > kMaxRings) break;
    std::string path = absl::StrCat(directory, "/", name);
    auto reader = client::RingReader::Open(path);
    if (!reader.ok() || !IsAsked(request, (*reader)->info())) continue;
    const client::RingInfo& info = (*reader)->info();
    const auto known = newest.find(info.task);
    if (known != newest.end() && known->second.info.created_unix_ns >= info.created_unix_ns) {
      continue;
    }
    newest[info.task] = {
        .ring = std::move(path),
        .info = info,
        .attributes = (*reader)->attributes(),
        .process = std::make_unique<TrainerProcess>(info.pid, info.process_start_ticks)};
  }
  std::vector<Trainer> trainers;
  for (auto& [task, trainer] : newest) trainers.push_back(std::move(trainer));
  return trainers;
}

}  // namespace tacho::agent
